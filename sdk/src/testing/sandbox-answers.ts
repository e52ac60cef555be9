// Sandbox handlers of the test server, following the contract.
import { SANDBOX_STATES } from '../generated/contract-tables.ts';
import type { ListSandboxesData, Preview, Sandbox } from '../generated/raw/index.ts';
import { note, requirePermission, type RequestContext, type Answers } from './answering.ts';
import { diagnosticsOf, execResultOf, liveMetrics } from './figures.ts';
import { newestFirst, paged } from './requests/paged.ts';
import { Refusal } from './requests/refusal.ts';
import type { TestCall } from './requests/request.ts';
import { egressOf, type SandboxAction, type TestSandbox } from './sandbox.ts';
import { createSandbox, requireRoom, respondWith } from './sandbox-create.ts';
import { newId } from './ids.ts';
import type { TestState } from './state.ts';

export const SANDBOX_ANSWERS: Answers = {
  listSandboxes: ({ query }, { state, nowMs }) => {
    const { sort = '-createdAt', status } = query as SandboxQuery;
    const newest = newestFirst(records(state, nowMs));
    if (sort.endsWith('lastActiveAt')) newest.sort((one, other) => other.lastActiveAt.localeCompare(one.lastActiveAt));
    const matches = matcher(query);
    const shows = (one: Sandbox): boolean =>
      matches(one) && (status === undefined || status.some((wanted) => wanted === one.status));
    return paged('sandboxes', sort.startsWith('-') ? newest : newest.toReversed(), query, { shows });
  },
  countSandboxes: ({ query }, { state, nowMs }) => {
    const byStatus: Record<string, number> = {};
    const found = records(state, nowMs).filter(matcher(query));
    for (const { status } of found) byStatus[status] = (byStatus[status] ?? 0) + 1;
    return { total: found.length, byStatus };
  },
  createSandbox: (call, about) => ({ sandbox: createSandbox(call, about) }),
  getSandbox: ({ params }, { state, nowMs }) => ({ sandbox: state.sandbox(params['sandboxId'] ?? '', nowMs).record }),
  execInSandbox: async ({ params, body }, about) => {
    const one = awakeSandbox('exec', params, about);
    const { record } = one;
    const { command, ...options } = body;
    note(about, 'sandbox_exec', { kind: 'sandbox', id: record.id }, record);
    return execResultOf(await about.exec(command, { sandbox: record, ...options, ...one.environment(options.env) }));
  },
  sleepSandbox: sleep,
  stopSandbox: sleep,
  wakeSandbox: wake,
  resumeSandbox: wake,
  destroySandbox: (call, about) =>
    transition('destroy', 'sandbox_destroy_requested', call, about, (one) =>
      one.destroy(about.nowMs, about.transitionMs),
    ),
  resizeSandbox: ({ params, body }, about) => {
    const one = about.state.sandbox(params['sandboxId'] ?? '', about.nowMs);
    one.allows('resize', 'a resize');
    const { allocated_vcpu, allocated_memory_gb, allocated_disk_gb } = one.record;
    if (body.diskGb !== undefined && body.diskGb < allocated_disk_gb)
      throw new Refusal('allocation_out_of_bounds', `the disk has ${allocated_disk_gb} GB and never shrinks`);
    one.setSize({
      vcpu: body.vcpu ?? allocated_vcpu,
      memoryGb: body.memoryGb ?? allocated_memory_gb,
      diskGb: body.diskGb ?? allocated_disk_gb,
    });
    note(about, 'sandbox_resize_requested', { kind: 'sandbox', id: one.record.id }, one.record);
    return { sandbox: one.record };
  },
  setEgress: ({ params, body }, about) => {
    const { record } = about.state.sandbox(params['sandboxId'] ?? '', about.nowMs);
    if (record.status === 'deleted' || record.status === 'destroying')
      throw new Refusal('sandbox_state_conflict', `the sandbox is ${record.status}`);
    record.egress = egressOf(body);
    note(about, 'sandbox_egress_changed', { kind: 'sandbox', id: record.id }, record);
    return { sandbox: record, enforced: SANDBOX_STATES[record.status as keyof typeof SANDBOX_STATES].awake };
  },
  updateSandbox: ({ params, body }, about) => {
    const { record } = about.state.sandbox(params['sandboxId'] ?? '', about.nowMs);
    if (record.status === 'deleted' || record.status === 'destroying')
      throw new Refusal('sandbox_state_conflict', `the sandbox is ${record.status}`);
    Object.assign(record, body);
    note(about, 'sandbox_updated', { kind: 'sandbox', id: record.id }, record);
    return { sandbox: record };
  },
  renewSandbox: ({ params }, about) => {
    const one = about.state.sandbox(params['sandboxId'] ?? '', about.nowMs);
    const { record } = one;
    if (record.ttlSeconds === null) throw new Refusal('not_ephemeral');
    one.allows('renew', 'a renewal');
    record.expiresAt = new Date(Date.parse(record.expiresAt ?? '') + record.ttlSeconds * 1_000).toISOString();
    note(about, 'sandbox_renewed', { kind: 'sandbox', id: record.id }, record);
    return { sandbox: record };
  },
  createPreview: ({ params, body }, about) => {
    const one = about.state.sandbox(params['sandboxId'] ?? '', about.nowMs);
    const { record } = one;
    if (record.status === 'deleted' || record.status === 'destroying')
      throw new Refusal('sandbox_state_conflict', `the sandbox is ${record.status}`);
    requirePermission(about, body.audience === 'public' ? 'sandbox.preview.share' : null);
    const preview: Preview = {
      id: body.audience === 'public' ? newId('prv') : null,
      audience: body.audience,
      port: body.port,
      url: `http://${newId('p').slice(2, 14)}.preview.berth.test/?token=${newId('t').slice(2)}`,
      expiresAt: new Date(about.nowMs + body.expiresInSeconds * 1_000).toISOString(),
      label: body.label ?? null,
      endUserId: body.endUserId ?? null,
      embeddable: body.embeddable,
      createdAt: new Date(about.nowMs).toISOString(),
      lastUsedAt: null,
      revokedAt: null,
      inactiveReason: null,
    };
    if (body.audience === 'public') one.previews.unshift(preview);
    note(about, 'preview_link_created', { kind: 'sandbox', id: record.id }, record);
    return { preview };
  },
  listPreviews: ({ params, query }, { state, nowMs }) => {
    const outstanding = state
      .sandbox(params['sandboxId'] ?? '', nowMs)
      .previews.filter(({ revokedAt, expiresAt }) => revokedAt === null && Date.parse(expiresAt) > nowMs);
    return paged('previews', outstanding, query);
  },
  revokePreview: ({ params }, about) => {
    const { record, previews } = about.state.sandbox(params['sandboxId'] ?? '', about.nowMs);
    const preview = previews.find(({ id }) => id === params['previewId']);
    if (preview === undefined) throw new Refusal('preview_link_not_found');
    if (preview.revokedAt === null) {
      Object.assign(preview, { revokedAt: new Date(about.nowMs).toISOString(), url: null });
      note(about, 'preview_link_revoked', { kind: 'sandbox', id: record.id }, record);
    }
    return { preview };
  },
  getLiveMetrics: ({ params }, about) => ({
    metrics: liveMetrics(awakeSandbox('metrics_live', params, about).record, about.nowMs),
  }),
  getMetricsHistory: ({ params, query }, about) => {
    const one = about.state.sandbox(params['sandboxId'] ?? '', about.nowMs);
    one.allows('metrics_history', 'a call of metrics_history');
    return { history: { stepSeconds: Number(query['windowSeconds'] ?? 0) > 3_600 ? 60 : 10, points: [] } };
  },
  getDiagnostics: ({ params }, { state, nowMs }) => ({
    diagnostics: diagnosticsOf(state.sandbox(params['sandboxId'] ?? '', nowMs).record, state.activity),
  }),
  sampleMetrics: ({ params }, about) => {
    const { record } = awakeSandbox('metrics_sample', params, about);
    const size = {
      vcpu: record.allocated_vcpu,
      memoryGb: record.allocated_memory_gb,
      diskGb: record.allocated_disk_gb,
    };
    note(about, 'sandbox_metrics_sample', { kind: 'sandbox', id: record.id }, record);
    return {
      sample: {
        sampledAt: new Date(about.nowMs).toISOString(),
        currentAllocation: size,
        recommendedAllocation: size,
        storedAsPending: false,
        reason: 'the test server uses nothing',
        cpuUsedPercent: null,
        memoryUsedPercent: 10,
        diskUsedPercent: 5,
      },
    };
  },
};

function sleep(call: TestCall, about: RequestContext): unknown {
  return transition('sleep', 'sandbox_sleep_requested', call, about, (one) =>
    one.sleep(about.nowMs, about.transitionMs),
  );
}

function wake(call: TestCall, about: RequestContext): unknown {
  return transition('wake', 'sandbox_wake_requested', call, about, (one) => {
    requireRoom(about.state, about.nowMs, about.concurrentSandboxes);
    one.wake(about.nowMs, about.transitionMs);
  });
}

function transition(
  action: SandboxAction,
  kind: string,
  { params, headers }: TestCall,
  about: RequestContext,
  begin: (one: TestSandbox) => void,
): unknown {
  const one = about.state.sandbox(params['sandboxId'] ?? '', about.nowMs);
  if (one.allows(action, `to ${action}`)) {
    begin(one);
    note(about, kind, { kind: 'sandbox', id: one.record.id }, one.record);
  }
  return { sandbox: respondWith(one, headers, about) };
}

const USES: { [action in SandboxAction]?: Sandbox['lastActiveBy'] } = {
  exec: 'exec',
  files_read: 'file',
  files_write: 'file',
  agent_session: 'agent',
};

/** Returns the sandbox if the action is allowed; wakes it if its project has `wakeOnUse`. */
export function awakeSandbox(action: SandboxAction, params: TestCall['params'], about: RequestContext): TestSandbox {
  const one = about.state.sandbox(params['sandboxId'] ?? '', about.nowMs);
  if (
    one.status === 'stopped' &&
    !action.startsWith('metrics') &&
    about.state.project(one.record.projectId).wakeOnUse
  ) {
    one.wake(about.nowMs, 0);
    one.catchUp(about.nowMs);
  }
  one.allows(action, `a call of ${action}`);
  one.record.lastActiveAt = new Date(about.nowMs).toISOString();
  one.record.lastActiveBy = USES[action] ?? one.record.lastActiveBy;
  return one;
}

type SandboxQuery = NonNullable<ListSandboxesData['query']>;

/** Current records, including those of deleted sandboxes. */
function records(state: TestState, nowMs: number): Sandbox[] {
  for (const one of state.sandboxes.values()) one.catchUp(nowMs);
  return [...state.sandboxes.values()].map(({ record }) => record);
}

/** Accepts undeleted sandboxes that match the filter, of any status. */
function matcher(query: TestCall['query']): (one: Sandbox) => boolean {
  const { endUserId, projectId, name, createdBy, q, metadata = {} } = query as SandboxQuery;
  return (one) =>
    one.status !== 'deleted' &&
    (endUserId === undefined || one.endUserId === endUserId) &&
    (projectId === undefined || one.projectId === projectId) &&
    (name === undefined || one.name === name) &&
    (createdBy === undefined || one.createdBy === createdBy) &&
    (q === undefined || one.id.startsWith(q) || one.name.toLowerCase().includes(q.toLowerCase())) &&
    Object.entries(metadata).every(([key, value]) => String(one.metadata[key]) === String(value));
}
