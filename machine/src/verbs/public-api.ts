// Client for the public HTTP API calls of the demo. Knows the API by its contract only.
import { execInSandbox } from '@berth/contract/commands/exec.ts';
import type { ExecResult } from '@berth/contract/commands/exec.ts';
import { listMyOrgs } from '@berth/contract/access/identity.ts';
import { listProjects } from '@berth/contract/orgs/projects.ts';
import { createSandbox, destroySandbox, getSandbox } from '@berth/contract/sandboxes/sandboxes.ts';
import type { CreateSandboxBody, Sandbox } from '@berth/contract/sandboxes/sandboxes.ts';
import type { Route } from '@berth/contract/route/route.ts';

const CALL_DEADLINE_MS = 30_000;

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
    const response = await this.#send(listMyOrgs, {}, undefined, signal, CALL_DEADLINE_MS);
    await response.arrayBuffer();
    return response.status === listMyOrgs.response.status;
  }

  async firstOrgId(signal: AbortSignal): Promise<string> {
    const { orgs } = listMyOrgs.response.body.parse(await this.#call(listMyOrgs, {}, undefined, signal));
    const orgId = orgs[0]?.id;
    if (orgId === undefined) throw new ApiFailure('the key belongs to no org');

    return orgId;
  }

  async firstProjectId(orgId: string, signal: AbortSignal): Promise<string> {
    const { projects } = listProjects.response.body.parse(await this.#call(listProjects, { orgId }, undefined, signal));
    const projectId = projects[0]?.id;
    if (projectId === undefined) throw new ApiFailure('the org has no project');

    return projectId;
  }

  async createSandbox(orgId: string, body: CreateSandboxBody, signal: AbortSignal): Promise<Sandbox> {
    return createSandbox.response.body.parse(await this.#call(createSandbox, { orgId }, body, signal)).sandbox;
  }

  async getSandbox(sandboxId: string, signal: AbortSignal): Promise<Sandbox> {
    return getSandbox.response.body.parse(await this.#call(getSandbox, { sandboxId }, undefined, signal)).sandbox;
  }

  async destroySandbox(sandboxId: string, signal: AbortSignal): Promise<Sandbox> {
    return destroySandbox.response.body.parse(await this.#call(destroySandbox, { sandboxId }, undefined, signal))
      .sandbox;
  }

  async exec(sandboxId: string, command: string, timeoutSeconds: number, signal: AbortSignal): Promise<ExecResult> {
    const deadlineMs = CALL_DEADLINE_MS + timeoutSeconds * 1_000;
    return execInSandbox.response.body.parse(
      await this.#call(execInSandbox, { sandboxId }, { command, timeoutSeconds }, signal, deadlineMs),
    );
  }

  async #call(
    route: Route,
    params: Record<string, string>,
    body: unknown,
    signal: AbortSignal,
    deadlineMs = CALL_DEADLINE_MS,
  ): Promise<unknown> {
    const response = await this.#send(route, params, body, signal, deadlineMs);
    const text = await response.text();
    if (response.status !== route.response.status)
      throw new ApiFailure(`${route.method} ${route.path} returned ${response.status}: ${text.slice(0, 1_000)}`);

    return JSON.parse(text);
  }

  async #send(
    route: Route,
    params: Record<string, string>,
    body: unknown,
    signal: AbortSignal,
    deadlineMs: number,
  ): Promise<Response> {
    const path = route.path.replaceAll(/\{(\w+)\}/g, (_whole, name: string) => encodeURIComponent(params[name] ?? ''));
    return fetch(`${this.#url}${path}`, {
      method: route.method,
      headers: {
        authorization: `Bearer ${this.#token}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.any([signal, AbortSignal.timeout(deadlineMs)]),
    });
  }
}
