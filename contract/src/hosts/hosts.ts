// Hosts of the installation: capacity, warm pool and sandboxes. Only members of the operator's org
// read them. Sandboxes and orgs appear by id alone: names belong to their orgs.
import { z } from 'zod';
import { HOSTS_PAGE } from '../route/limits.ts';
import { numberInQuery } from '../route/number-in-query.ts';
import { pageQuery } from '../route/page.ts';
import { defineRoute } from '../route/route.ts';
import { idText, nameInPath, timestamp } from '../route/text.ts';
import { sandboxStatus } from '../sandboxes/state.ts';

const amount = z.int().nonnegative();
const room = z.strictObject({ vcpu: amount, memoryMib: amount, diskGib: amount });

const accelerator = z.enum(['kvm', 'tcg', 'none']).meta({
  id: 'HostAccelerator',
  description:
    'Virtualization of a host. `tcg`: emulation, many times slower than `kvm`. `none`: commands run without a VM, ' +
    'for tests of Berth. More may be added; clients must accept unknown values.',
});

const state = z.enum(['available', 'unavailable']).meta({
  id: 'HostState',
  description:
    '`unavailable`: the host did not respond for 30 s and receives no sandboxes; its figures are the last known ' +
    'ones. More may be added; clients must accept unknown values.',
});

const host = z
  .strictObject({
    id: idText,
    state,
    lastSeenAt: timestamp.describe('Last complete response to the service, which polls every second.'),
    accelerator,
    capacity: room.describe('Total that sandboxes can reserve, after overcommitment.'),
    reserved: room.describe(
      'Reserved by sandboxes. One without a VM reserves disk only; disk includes the space of a snapshot.',
    ),
    free: room.describe('Capacity that no sandbox reserves; 0 if the host shrank below its reservations.'),
    pool: z
      .strictObject({ ready: amount, target: amount })
      .nullable()
      .describe('VMs of the warm pool, ready for a create, and their target number; null until the host reports them.'),
    vms: amount.describe('Sandboxes with a VM on the host, also while it is created, saved or deleted.'),
    asleep: amount.describe('Sandboxes without a VM whose disk the host keeps.'),
    createdAt: timestamp.describe('First response to the service.'),
  })
  .meta({ id: 'Host', description: 'A host, which runs the VMs of sandboxes.' });
export type Host = z.infer<typeof host>;

const hostSandbox = z
  .strictObject({
    id: idText,
    orgId: idText,
    status: sandboxStatus,
    statusChangedAt: timestamp,
    size: room.describe('Size in force.'),
    createdAt: timestamp,
  })
  .meta({ id: 'HostSandbox', description: 'A sandbox on a host, by its ids.' });
export type HostSandbox = z.infer<typeof hostSandbox>;

const query = z.object({
  after: pageQuery.shape.after,
  limit: numberInQuery({
    min: 1,
    max: HOSTS_PAGE.max,
    description: `Maximum number of items; default ${HOSTS_PAGE.default}.`,
  }).default(HOSTS_PAGE.default),
});

const pageFields = { nextCursor: z.string().nullable(), hasMore: z.boolean() };

export const listHosts = defineRoute({
  name: 'listHosts',
  summary: "Lists the hosts of the installation, oldest first, as last known; for members of the operator's org",
  method: 'GET',
  path: '/v1/service/hosts',
  auth: ['session', 'api_key'],
  permission: 'hosts.read',
  request: { query },
  response: { status: 200, body: z.strictObject({ hosts: z.array(host), ...pageFields }) },
  errors: [],
  activity: null,
  published: true,
});

export const getHost = defineRoute({
  name: 'getHost',
  summary: "Returns a host with its undeleted sandboxes, newest first; for members of the operator's org",
  method: 'GET',
  path: '/v1/service/hosts/{hostId}',
  auth: ['session', 'api_key'],
  permission: 'hosts.read',
  request: { params: z.object({ hostId: nameInPath.describe('Id of a host.') }), query },
  response: { status: 200, body: z.strictObject({ host, sandboxes: z.array(hostSandbox), ...pageFields }) },
  errors: ['host_not_found'],
  activity: null,
  published: true,
});
