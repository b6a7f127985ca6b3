"""Ask wgpu for the WebGPU adapters of every graphics API."""

from __future__ import annotations

from typing import Any

from localglm.devices.answers import Adapter, Adapters
from localglm.devices.probes import AbsentError


def probe() -> Adapters:
    """List the adapters in the library's order.

    Raises: AbsentError without the package or without any adapter.
    """
    try:
        import wgpu  # noqa: PLC0415 - only in a child
        import wgpu.backends.wgpu_native  # noqa: PLC0415
    except (ImportError, OSError) as error:
        raise AbsentError(f"the package wgpu cannot be used: {error}") from error
    found = wgpu.gpu.enumerate_adapters_sync()
    if not found:
        raise AbsentError("no graphics driver offers an adapter (no Vulkan, Metal or DirectX 12)")
    return Adapters(tuple(_adapter(adapter) for adapter in found), wgpu.__version__)


def _adapter(adapter: Any) -> Adapter:
    info, limits = adapter.info, adapter.limits
    return Adapter(
        device=str(info.get("device", "")),
        backend_type=str(info.get("backend_type", "")),
        adapter_type=str(info.get("adapter_type", "Unknown")),
        vendor=str(info.get("vendor", "")),
        vendor_id=int(info.get("vendor_id", 0)),
        device_id=int(info.get("device_id", 0)),
        description=str(info.get("description", "")),
        binding_bytes=int(limits.get("max-storage-buffer-binding-size", 0)),
        buffer_bytes=int(limits.get("max-buffer-size", 0)),
        has_subgroups="subgroup" in adapter.features,
        has_f16="shader-f16" in adapter.features,
    )
