// A client of the public API as a user would write it: fetch, a bearer token, JSON. Validates
// responses with the contract's schemas, so that a test fails at any deviation.
import { setTimeout as delay } from 'node:timers/promises';
import { execResult, type ExecResult } from '@berth/contract/commands/exec.ts';
import { errorEnvelope } from '@berth/contract/route/errors.ts';
import type { Project } from '@berth/contract/orgs/projects.ts';
import { sandbox as sandboxSchema, type Sandbox } from '@berth/contract/sandboxes/sandboxes.ts';
import { z } from 'zod';

export interface Answer {
  status: number;
  headers: Headers;
  body: unknown;
}

export interface Caller {
  url: string;
  token: string;
  orgId: string;
  projectId: string;
}

export interface CallOptions {
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

/** Sends one request. `body` undefined: none. Every response must be JSON. */
export async function call(
  caller: Caller,
  method: string,
  path: string,
  body?: unknown,
  options: CallOptions = {},
): Promise<Answer> {
  const response = await fetch(new URL(path, caller.url), {
    method,
    headers: {
      authorization: `Bearer ${caller.token}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...options.headers,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    ...(options.signal === undefined ? {} : { signal: options.signal }),
  });
  return { status: response.status, headers: response.headers, body: await response.json() };
}

const sandboxAnswer = z.object({ sandbox: sandboxSchema });
const sandboxesAnswer = z.object({ sandboxes: z.array(sandboxSchema) });

function expectStatus(answer: Answer, status: number): Answer {
  if (answer.status !== status)
    throw new Error(`expected ${status}, got ${answer.status}: ${JSON.stringify(answer.body)}`);
  return answer;
}

/** Creates a sandbox and returns the response; the sandbox may still be provisioning. */
export async function createSandbox(
  caller: Caller,
  fields: Record<string, unknown> = {},
  options: CallOptions = {},
): Promise<Sandbox> {
  const answer = await call(
    caller,
    'POST',
    `/v1/orgs/${caller.orgId}/sandboxes`,
    { agent: 'agent_one', projectId: caller.projectId, ...fields },
    options,
  );
  return sandboxAnswer.parse(expectStatus(answer, 201).body).sandbox;
}

export async function getSandbox(caller: Caller, sandboxId: string): Promise<Sandbox> {
  return sandboxAnswer.parse(expectStatus(await call(caller, 'GET', `/v1/sandboxes/${sandboxId}`), 200).body).sandbox;
}

export async function listSandboxes(caller: Caller, query = ''): Promise<Sandbox[]> {
  return sandboxesAnswer.parse(
    expectStatus(await call(caller, 'GET', `/v1/orgs/${caller.orgId}/sandboxes${query}`), 200).body,
  ).sandboxes;
}

/** Polls until the sandbox has one of the statuses. */
export async function waitForStatus(
  caller: Caller,
  sandboxId: string,
  statuses: readonly string[],
  timeoutMs = 240_000,
): Promise<Sandbox> {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    const sandbox = await getSandbox(caller, sandboxId);
    if (statuses.includes(sandbox.status)) return sandbox;
    if (Date.now() > deadline) {
      throw new Error(
        `sandbox ${sandboxId} is ${sandbox.status} after ${timeoutMs} ms, expected ${statuses.join(' or ')}`,
      );
    }

    await delay(50);
  }
}

/** Creates a sandbox and waits until it serves commands. */
export async function awakeSandbox(caller: Caller, fields: Record<string, unknown> = {}): Promise<Sandbox> {
  const created = await createSandbox(caller, fields);
  const sandbox = await waitForStatus(caller, created.id, ['running', 'ready', 'failed']);
  if (sandbox.status === 'failed')
    throw new Error(`sandbox ${sandbox.id} failed: ${JSON.stringify(sandbox.statusReason)}`);
  return sandbox;
}

export async function exec(
  caller: Caller,
  sandboxId: string,
  command: string,
  timeoutSeconds?: number,
): Promise<ExecResult> {
  const answer = await call(caller, 'POST', `/v1/sandboxes/${sandboxId}/exec`, {
    command,
    ...(timeoutSeconds === undefined ? {} : { timeoutSeconds }),
  });
  return execResult.parse(expectStatus(answer, 200).body);
}

export async function destroySandbox(caller: Caller, sandboxId: string): Promise<Sandbox> {
  const answer = expectStatus(await call(caller, 'POST', `/v1/sandboxes/${sandboxId}/destroy`), 200);
  const sandbox = sandboxAnswer.parse(answer.body).sandbox;
  return sandbox.status === 'deleted' ? sandbox : waitForStatus(caller, sandboxId, ['deleted']);
}

/** Puts a sandbox to sleep and waits for it. An ephemeral sandbox ends instead. */
export async function sleepSandbox(caller: Caller, sandboxId: string): Promise<Sandbox> {
  return await settled(caller, await act(caller, sandboxId, 'sleep'), ['stopped', 'deleted']);
}

/** Wakes a sandbox and waits until it serves commands. */
export async function wakeSandbox(caller: Caller, sandboxId: string): Promise<Sandbox> {
  return await settled(caller, await act(caller, sandboxId, 'wake'), ['running', 'ready']);
}

/** Requests a size and returns the response. */
export async function resizeSandbox(caller: Caller, sandboxId: string, size: Record<string, number>): Promise<Sandbox> {
  return await act(caller, sandboxId, 'resize', size);
}

export async function renewSandbox(caller: Caller, sandboxId: string): Promise<Sandbox> {
  return await act(caller, sandboxId, 'renew');
}

/** Calls a verb that returns the sandbox with 200; throws at any other response. */
export async function act(caller: Caller, sandboxId: string, verb: string, body?: unknown): Promise<Sandbox> {
  return sandboxAnswer.parse(
    expectStatus(await call(caller, 'POST', `/v1/sandboxes/${sandboxId}/${verb}`, body), 200).body,
  ).sandbox;
}

/** Waits for one of the statuses; rejects when the sandbox comes to rest in another. */
async function settled(
  caller: Caller,
  answered: Sandbox,
  wanted: readonly string[],
  timeoutMs = 120_000,
): Promise<Sandbox> {
  const sandbox = await waitForStatus(
    caller,
    answered.id,
    ['running', 'ready', 'stopped', 'failed', 'deleted'],
    timeoutMs,
  );
  if (wanted.includes(sandbox.status)) return sandbox;
  throw new Error(
    `${sandbox.id} is ${sandbox.status} rather than ${wanted.join(' or ')}: ${JSON.stringify(sandbox.statusReason)}`,
  );
}

export async function createProject(caller: Caller, fields: Record<string, unknown> = {}): Promise<Project> {
  const answer = expectStatus(await call(caller, 'POST', `/v1/orgs/${caller.orgId}/projects`, fields), 201);
  return (answer.body as { project: Project }).project;
}

/** Error of a response; throws unless it is the error envelope with that status. */
export function errorOf(answer: Answer, status: number): { code: string; message: string } {
  return errorEnvelope.parse(expectStatus(answer, status).body).error;
}
