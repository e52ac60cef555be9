// Client for the public HTTP API calls of the demo. Knows the API by its contract only.
import { randomUUID } from 'node:crypto';
import { execInSandbox } from '@berth/contract/commands/exec.ts';
import type { ExecResult } from '@berth/contract/commands/exec.ts';
import { listMyOrgs } from '@berth/contract/access/identity.ts';
import { listProjects } from '@berth/contract/orgs/projects.ts';
import { createSandbox, destroySandbox, getSandbox } from '@berth/contract/sandboxes/sandboxes.ts';
import type { CreateSandboxBody, Sandbox } from '@berth/contract/sandboxes/sandboxes.ts';
import type { Route } from '@berth/contract/route/route.ts';

const CALL_DEADLINE_MS = 30_000;
const CREATE_ATTEMPTS = 4;

interface CallOptions {
  /** Absent: not interrupted. */
  signal?: AbortSignal;
  headers?: Record<string, string>;
  deadlineMs?: number;
}

/** The API refused a call, or its response violates the contract. */
class ApiFailure extends Error {
  override readonly name = 'ApiFailure';
}

export class PublicApi {
  readonly #url: string;
  readonly #token: string;

  constructor(url: string, token: string) {
    this.#url = url;
    this.#token = token;
  }

  async isAccepted(signal: AbortSignal): Promise<boolean> {
    const response = await this.#send(listMyOrgs, {}, undefined, { signal });
    await response.arrayBuffer();
    return response.status === listMyOrgs.response.status;
  }

  async firstOrgId(signal: AbortSignal): Promise<string> {
    const { orgs } = listMyOrgs.response.body.parse(await this.#call(listMyOrgs, {}, undefined, { signal }));
    const orgId = orgs[0]?.id;
    if (orgId === undefined) throw new ApiFailure('the key belongs to no org');

    return orgId;
  }

  async firstProjectId(orgId: string, signal: AbortSignal): Promise<string> {
    const { projects } = listProjects.response.body.parse(
      await this.#call(listProjects, { orgId }, undefined, { signal }),
    );
    const projectId = projects[0]?.id;
    if (projectId === undefined) throw new ApiFailure('the org has no project');

    return projectId;
  }

  /** Repeats a create without a response: its sandbox may exist, and would stay. */
  async createSandbox(orgId: string, body: CreateSandboxBody): Promise<Sandbox> {
    const headers = { 'idempotency-key': randomUUID() };
    for (let attempt = 1; ; attempt += 1) {
      try {
        const response = await this.#call(createSandbox, { orgId }, body, { headers });
        return createSandbox.response.body.parse(response).sandbox;
      } catch (error) {
        if (error instanceof ApiFailure || attempt === CREATE_ATTEMPTS) throw error;
      }
    }
  }

  async getSandbox(sandboxId: string, signal: AbortSignal): Promise<Sandbox> {
    return getSandbox.response.body.parse(await this.#call(getSandbox, { sandboxId }, undefined, { signal })).sandbox;
  }

  async destroySandbox(sandboxId: string, signal: AbortSignal): Promise<Sandbox> {
    return destroySandbox.response.body.parse(await this.#call(destroySandbox, { sandboxId }, undefined, { signal }))
      .sandbox;
  }

  async exec(sandboxId: string, command: string, timeoutSeconds: number, signal: AbortSignal): Promise<ExecResult> {
    const deadlineMs = CALL_DEADLINE_MS + timeoutSeconds * 1_000;
    return execInSandbox.response.body.parse(
      await this.#call(execInSandbox, { sandboxId }, { command, timeoutSeconds }, { signal, deadlineMs }),
    );
  }

  async #call(route: Route, params: Record<string, string>, body: unknown, options: CallOptions): Promise<unknown> {
    const response = await this.#send(route, params, body, options);
    const text = await response.text();
    if (response.status !== route.response.status)
      throw new ApiFailure(`${route.method} ${route.path} returned ${response.status}: ${text.slice(0, 1_000)}`);

    return JSON.parse(text);
  }

  async #send(
    route: Route,
    params: Record<string, string>,
    body: unknown,
    { signal, headers, deadlineMs = CALL_DEADLINE_MS }: CallOptions,
  ): Promise<Response> {
    const path = route.path.replaceAll(/\{(\w+)\}/g, (_whole, name: string) => encodeURIComponent(params[name] ?? ''));
    return fetch(`${this.#url}${path}`, {
      method: route.method,
      headers: {
        ...headers,
        authorization: `Bearer ${this.#token}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.any([...(signal === undefined ? [] : [signal]), AbortSignal.timeout(deadlineMs)]),
    });
  }
}
