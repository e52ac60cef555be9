// Creates of the test server, with `Idempotency-Key` or `getOrCreate`.
import { MACHINE_SIZES, SANDBOX_STATES } from '../generated/contract-tables.ts';
import type { CreateSandboxData, Project, Sandbox } from '../generated/raw/index.ts';
import { note, requirePermission, type RequestContext } from './answering.ts';
import { newId } from './ids.ts';
import { Refusal } from './requests/refusal.ts';
import type { TestCall } from './requests/request.ts';
import { newRecord, TestSandbox } from './sandbox.ts';
import type { TestState } from './state.ts';

type CreateBody = CreateSandboxData['body'];

export function createSandbox(call: TestCall, about: RequestContext): Sandbox {
  const { headers } = call;
  const body = call.body as CreateBody;
  const { state, nowMs, transitionMs, concurrentSandboxes } = about;
  const key = headers.get('idempotency-key');
  if (key !== null && body.getOrCreate !== undefined)
    throw new Refusal('invalid_request', 'body.getOrCreate excludes the Idempotency-Key header');
  const asked = JSON.stringify(body);
  const before = key === null ? undefined : state.creates.get(key);
  if (before !== undefined) {
    if (before.asked !== asked) throw new Refusal('idempotency_key_conflict');
    about.headers.set('idempotent-replayed', 'true');
    return state.sandbox(before.sandboxId, nowMs).record;
  }
  const project = state.projects.get(body.projectId);
  if (project === undefined || project.deletedAt !== null) throw new Refusal('unknown_project');
  if ((body.mode === undefined) !== (body.ttlSeconds === undefined))
    throw new Refusal('invalid_request', 'body.ttlSeconds belongs to mode ephemeral');
  if (body.mode === 'ephemeral' && project.useCase !== 'external') throw new Refusal('ephemeral_not_allowed');
  const record = newRecord({ id: newId('sbx'), createdBy: state.userId }, body, project, nowMs);
  const existing = body.getOrCreate === undefined ? undefined : ofKey(body, record, project, about);
  if (existing !== undefined) {
    about.headers.set('idempotent-replayed', 'true');
    return respondWith(existing, headers, about);
  }
  requireRoom(state, nowMs, concurrentSandboxes);
  const sandbox = new TestSandbox(record, (changed) => state.entered(changed), about.now);
  state.sandboxes.set(record.id, sandbox);
  state.shapes.set(record.id, shapeOf(record, body));
  if (key !== null) state.creates.set(key, { asked, sandboxId: record.id });
  note(about, 'sandbox_created', { kind: 'sandbox', id: record.id }, record);
  sandbox.provision(nowMs, transitionMs);
  return respondWith(sandbox, headers, about);
}

/** The live sandbox of the key, woken; undefined without one. */
function ofKey(body: CreateBody, wished: Sandbox, project: Project, about: RequestContext): TestSandbox | undefined {
  const { state, nowMs, transitionMs, concurrentSandboxes } = about;
  requirePermission(about, 'sandbox.wake');
  for (const one of state.sandboxes.values()) {
    one.catchUp(nowMs);
    const { record } = one;
    if (record.projectId !== project.id || record.key !== wished.key) continue;
    if (one.status === 'destroying' || one.status === 'deleted') continue;
    if (one.status === 'failed' && record.wakesFrom === null) {
      record.key = null;
      continue;
    }
    const made = state.shapes.get(record.id) ?? {};
    const differs = Object.entries(shapeOf(wished, body)).filter(
      ([field, value]) => body[field as keyof CreateBody] !== undefined && made[field] !== value,
    );
    if (differs.length > 0)
      throw new Refusal('sandbox_differs', `other fields: ${differs.map(([field]) => field).join(', ')}`);
    if (one.status === 'sleeping')
      throw new Refusal('sandbox_state_conflict', 'the sandbox is still falling asleep', { 'retry-after': '1' });
    if (one.status === 'stopped' || one.status === 'failed') {
      requireRoom(state, nowMs, concurrentSandboxes);
      one.wake(nowMs, transitionMs);
      note(about, 'sandbox_wake_requested', { kind: 'sandbox', id: record.id }, record);
    } else if (SANDBOX_STATES[one.status].awake) {
      record.lastActiveAt = new Date(nowMs).toISOString();
      record.lastActiveBy = 'create';
    }
    return one;
  }
  return undefined;
}

/** Fields that later creates with the key must repeat, as text. */
function shapeOf(record: Sandbox, { sshPublicKey }: CreateBody): Record<string, string> {
  const { allocated_vcpu: vcpu, agent, persistencePolicy, mode, ttlSeconds, repository, branch } = record;
  const machineSize = Object.entries(MACHINE_SIZES).find(([, size]) => size.vcpu === vcpu)?.[0];
  const fields = {
    agent,
    profile: record.sandbox_profile,
    machineSize,
    persistencePolicy,
    mode,
    ttlSeconds,
    repository,
  };
  const rest = { branch, egress: record.egress, endUserId: record.endUserId, sshPublicKey: sshPublicKey ?? null };
  return Object.fromEntries(
    Object.entries({ ...fields, ...rest }).map(([name, value]) => [name, JSON.stringify(value)]),
  );
}

/**
 * Record for the response. Completes instant transitions first, unless the caller does not wait.
 */
export function respondWith(one: TestSandbox, headers: Headers, { nowMs, headers: answer }: RequestContext): Sandbox {
  if (headers.get('prefer') !== 'respond-async') one.catchUp(nowMs);
  else answer.set('preference-applied', 'respond-async');
  return structuredClone(one.record);
}

export function requireRoom(state: TestState, nowMs: number, limit: number | null): void {
  for (const one of state.sandboxes.values()) one.catchUp(nowMs);
  const awake = [...state.sandboxes.values()].filter(({ status }) => SANDBOX_STATES[status].concurrent).length;
  if (limit !== null && awake >= limit)
    throw new Refusal('concurrent_sandbox_limit', `the plan allows ${limit} sandboxes awake at once`);
}
