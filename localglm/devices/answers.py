"""What each probe prints, in the words of the API it asked. Nothing is concluded here."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OpenClDevice:
    """One OpenCL device; what its driver would not tell is None."""

    platform: str
    name: str
    vendor: str = ""
    vendor_id: int = 0
    type: int = 0
    driver: str = ""
    board_name: str | None = None
    memory_bytes: int | None = None
    free_kib: int | None = None
    pci_bus: int | None = None
    pci_device: int | None = None
    pci_function: int | None = None
    pci_domain: int | None = None
    capability: tuple[int, int] | None = None
    unified_memory: bool | None = None


@dataclass(frozen=True, slots=True)
class OpenCl:
    """Every device of every OpenCL platform, and platforms that would not list theirs."""

    devices: tuple[OpenClDevice, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Adapter:
    """One WebGPU adapter."""

    device: str
    backend_type: str
    adapter_type: str = "Unknown"
    vendor: str = ""
    vendor_id: int = 0
    device_id: int = 0
    description: str = ""
    binding_bytes: int = 0
    buffer_bytes: int = 0
    has_subgroups: bool = False
    has_f16: bool = False


@dataclass(frozen=True, slots=True)
class Adapters:
    """Every WebGPU adapter, in the order of the library."""

    adapters: tuple[Adapter, ...] = ()
    version: str = ""


@dataclass(frozen=True, slots=True)
class RuntimeDevice:
    """One device of CUDA or HIP, through a driver or through torch."""

    index: int
    name: str
    pci_bus: int | None = None
    pci_device: int | None = None
    pci_domain: int = 0
    uuid: str | None = None
    capability: tuple[int, int] | None = None
    gfx: str | None = None
    memory_bytes: int | None = None
    free_bytes: int | None = None
    is_integrated: bool | None = None


@dataclass(frozen=True, slots=True)
class Torch:
    """A torch installation: ``cuda`` and ``hip`` name the runtime it was built for."""

    version: str
    cuda: str | None = None
    hip: str | None = None
    architectures: tuple[str, ...] = ()
    devices: tuple[RuntimeDevice, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True)
class TorchPackage:
    """The torch that is installed, read from its package without starting it."""

    version: str


@dataclass(frozen=True, slots=True)
class DriverLibrary:
    """A CUDA or HIP driver library; ``version`` as it counts: 12080 and 60340043."""

    library: str
    version: int
    devices: tuple[RuntimeDevice, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True)
class NvmlDevice:
    """One card as NVIDIA's management library lists it."""

    name: str
    pci_address: str
    uuid: str = ""
    pci_device_id: int = 0
    capability: tuple[int, int] | None = None
    memory_bytes: int | None = None
    used_bytes: int | None = None
    free_bytes: int | None = None
    is_display_attached: bool | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Nvml:
    """NVIDIA's driver: its version and the newest CUDA it runs (12080 is 12.8)."""

    driver: str
    cuda_version: int | None = None
    devices: tuple[NvmlDevice, ...] = ()


@dataclass(frozen=True, slots=True)
class PciDevice:
    """One display or accelerator function of the PCI bus, from Linux."""

    address: str
    vendor: int
    device: int
    driver: str = ""
    driver_version: str = ""
    is_boot_display: bool = False
    vram_bytes: int | None = None
    vram_used_bytes: int | None = None
    gtt_bytes: int | None = None
    is_removable: bool = False


@dataclass(frozen=True, slots=True)
class KfdNode:
    """One graphics node of AMD's compute driver."""

    node: int
    gfx_target_version: int
    location_id: int
    domain: int = 0
    vendor: int = 0
    device: int = 0
    unique_id: int = 0
    simd_count: int = 0
    memory_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class LinuxCards:
    """What Linux tells without any driver library."""

    pci: tuple[PciDevice, ...] = ()
    kfd: tuple[KfdNode, ...] = ()
    has_kfd: bool = False
    may_open_kfd: bool = False
    render_nodes: tuple[str, ...] = ()
    closed_render_nodes: tuple[str, ...] = ()
    has_dxg: bool = False


@dataclass(frozen=True, slots=True)
class WindowsCard:
    """One display adapter of the Windows registry."""

    name: str
    vendor: int = 0
    device: int = 0
    driver: str = ""
    memory_bytes: int | None = None
    bus: int | None = None
    slot: int | None = None
    function: int | None = None
    is_present: bool = True


@dataclass(frozen=True, slots=True)
class WindowsCards:
    """Every display adapter Windows knows, also those that were taken out."""

    cards: tuple[WindowsCard, ...] = ()


@dataclass(frozen=True, slots=True)
class Processor:
    """The processor, and why our library cannot be used on it, where that is so."""

    name: str
    machine: str
    logical: int
    physical: int | None = None
    allowed: int | None = None
    instruction_sets: tuple[str, ...] = ()
    library_problem: str = ""


@dataclass(frozen=True, slots=True)
class Memory:
    """Main memory; ``commit`` is what the system promises in all, ``limit`` a container's share."""

    total_bytes: int
    available_bytes: int
    swap_bytes: int = 0
    commit_limit_bytes: int | None = None
    commit_free_bytes: int | None = None
    limit_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class DiskRate:
    """Read rate at random places of a file, one read at a time and sixteen at once."""

    file: str
    file_bytes: int
    read_bytes: int
    one_bytes_per_s: float
    sixteen_bytes_per_s: float
    is_direct: bool


@dataclass(frozen=True, slots=True)
class Terminal:
    """What is known of the terminal the program was started in."""

    is_terminal: bool
    columns: int
    lines: int
    encoding: str
    term: str = ""
    colour: str = ""
    program: str = ""
