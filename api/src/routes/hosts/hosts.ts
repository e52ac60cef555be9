// Wire format of hosts.
import { getHost, listHosts, type Host, type HostSandbox } from '@berth/contract/hosts/hosts.ts';
import * as hosts from '../../services/hosts/hosts.ts';
import { bind } from '../../call/bind.ts';

export const hostRoutes = [
  bind(listHosts, async (context, { query }) => {
    const { rows, nextCursor } = await hosts.listHosts(context, query);
    return { hosts: rows.map(viewHost), nextCursor, hasMore: nextCursor !== null };
  }),
  bind(getHost, async (context, { params, query }) => {
    const { host, sandboxes } = await hosts.getHost(context, params.hostId, query);
    const { rows, nextCursor } = sandboxes;
    return { host: viewHost(host), sandboxes: rows.map(viewSandbox), nextCursor, hasMore: nextCursor !== null };
  }),
];

function viewHost(row: hosts.ListedHostRow): Host {
  const capacity = {
    vcpu: row.capacity_vcpu,
    memoryMib: row.capacity_memory_mib,
    diskGib: row.capacity_disk_gib,
  };
  const reserved = {
    vcpu: row.held_vcpu ?? 0,
    memoryMib: row.held_memory_mib ?? 0,
    diskGib: row.held_disk_gib ?? 0,
  };
  const freeOf = (resource: keyof typeof capacity): number => Math.max(0, capacity[resource] - reserved[resource]);
  return {
    id: row.id,
    state: row.available ? 'available' : 'unavailable',
    lastSeenAt: row.last_seen_at.toISOString(),
    accelerator: row.accelerator as Host['accelerator'],
    capacity,
    reserved,
    free: { vcpu: freeOf('vcpu'), memoryMib: freeOf('memoryMib'), diskGib: freeOf('diskGib') },
    pool:
      row.pool_ready === null || row.pool_target === null ? null : { ready: row.pool_ready, target: row.pool_target },
    vms: row.vms ?? 0,
    asleep: row.asleep ?? 0,
    createdAt: row.created_at.toISOString(),
  };
}

function viewSandbox(row: hosts.HostSandboxRow): HostSandbox {
  const { allocated_vcpu: vcpu, allocated_memory_gb: memoryGb, allocated_disk_gb: diskGib } = row;
  return {
    id: row.id,
    orgId: row.org_id,
    status: row.status,
    statusChangedAt: row.status_changed_at.toISOString(),
    size: { vcpu, memoryMib: memoryGb * 1_024, diskGib },
    createdAt: row.created_at.toISOString(),
  };
}
