// The routes of the internal protocol (protocol/src/host.ts), each bound to a verb of the
// lifecycle. Parses what comes in; decides nothing.
import type { IncomingMessage } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { guestExecRequest } from '@berth/protocol/guest.ts';
import { vmClone, vmCreate, vmDestroyQuery, vmResize, vmSleep, vmWake, type HostInfo } from '@berth/protocol/host.ts';
import { readAtMost, TooLong } from '@berth/os/bounded-body.ts';
import { HostError } from '../vm/host-error.ts';
import type { VmLifecycle } from '../vm/lifecycle/lifecycle.ts';
import { answerJson } from './answer.ts';
import { fileRoutes } from './file-routes.ts';
import { parse, type Route } from './route.ts';

/** Sixteen long keys, with every character escaped. */
const CREATE_BODY_BYTES = 2 * 1_024 * 1_024;
const SMALL_BODY_BYTES = 4_096;
/** A command of 1 MiB with every byte a six byte JSON escape. */
const EXEC_BODY_BYTES = 7 * 1_024 * 1_024;
/** A URL, a branch and a secret with every character escaped. */
const CLONE_BODY_BYTES = 256 * 1_024;

export interface RouteParts {
  lifecycle: VmLifecycle;
  pool: { state(): HostInfo['pool'] };
  /** Everything of `GET /host` that does not change while the daemon runs. */
  host: Omit<HostInfo, 'capacity' | 'reserved' | 'largest' | 'pool'>;
}

const ONE_VM = /^\/vms\/([^/]+)$/;

export function routesOf({ lifecycle, pool, host }: RouteParts): Route[] {
  return [
    {
      method: 'GET',
      path: /^\/host$/,
      handle: async ({ response }) => {
        answerJson(response, 200, { ...host, ...lifecycle.capacity(), pool: pool.state() } satisfies HostInfo);
      },
    },
    {
      method: 'GET',
      path: /^\/vms$/,
      handle: async ({ response }) => answerJson(response, 200, { vms: lifecycle.list() }),
    },
    {
      method: 'GET',
      path: ONE_VM,
      handle: async ({ response, id }) => answerJson(response, 200, lifecycle.get(id)),
    },
    {
      method: 'PUT',
      path: ONE_VM,
      handle: async ({ request, response, id }) => {
        const body = parse(vmCreate, await readJson(request, CREATE_BODY_BYTES), 'the body');
        answerJson(response, 200, await lifecycle.create(id, body));
      },
    },
    {
      method: 'DELETE',
      path: ONE_VM,
      handle: async ({ response, url, id }) => {
        const { epoch } = parse(vmDestroyQuery, Object.fromEntries(url.searchParams), 'the query');
        answerJson(response, 200, await lifecycle.destroy(id, epoch));
      },
    },
    {
      method: 'POST',
      path: /^\/vms\/([^/]+)\/sleep$/,
      handle: async ({ request, response, id }) => {
        const body = parse(vmSleep, await readJson(request, SMALL_BODY_BYTES), 'the body');
        answerJson(response, 200, await lifecycle.sleep(id, body));
      },
    },
    {
      method: 'POST',
      path: /^\/vms\/([^/]+)\/wake$/,
      handle: async ({ request, response, id }) => {
        const body = parse(vmWake, await readJson(request, CREATE_BODY_BYTES), 'the body');
        answerJson(response, 200, await lifecycle.wake(id, body));
      },
    },
    {
      method: 'POST',
      path: /^\/vms\/([^/]+)\/resize$/,
      handle: async ({ request, response, id }) => {
        const body = parse(vmResize, await readJson(request, SMALL_BODY_BYTES), 'the body');
        answerJson(response, 200, await lifecycle.resize(id, body));
      },
    },
    {
      method: 'GET',
      path: /^\/vms\/([^/]+)\/metrics$/,
      handle: async ({ response, id, signal }) => answerJson(response, 200, await lifecycle.metrics(id, signal)),
    },
    {
      method: 'GET',
      path: /^\/vms\/([^/]+)\/ssh-host-key$/,
      handle: async ({ response, id }) => answerJson(response, 200, await lifecycle.sshHostKey(id)),
    },
    {
      method: 'POST',
      path: /^\/vms\/([^/]+)\/exec$/,
      handle: async ({ request, response, id, signal }) => {
        const command = parse(guestExecRequest, await readJson(request, EXEC_BODY_BYTES), 'the body');
        const output = await lifecycle.exec(id, command, signal);
        response.writeHead(200, { 'content-type': 'application/json' });
        response.flushHeaders();
        await pipeline(output, response);
      },
    },
    {
      method: 'POST',
      path: /^\/vms\/([^/]+)\/clone$/,
      handle: async ({ request, response, id, signal }) => {
        const clone = parse(vmClone, await readJson(request, CLONE_BODY_BYTES), 'the body');
        const outcome = await lifecycle.clone(id, clone, signal);
        response.writeHead(200, { 'content-type': 'application/json' });
        response.flushHeaders();
        await pipeline(outcome, response);
      },
    },
    ...fileRoutes(lifecycle),
  ];
}

async function readJson(request: IncomingMessage, maxBytes: number): Promise<unknown> {
  try {
    // The request's socket must stay open for the answer, whatever becomes of its body.
    return JSON.parse(
      await readAtMost(request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>, maxBytes),
    );
  } catch (error) {
    if (error instanceof SyntaxError) throw new HostError('invalid_request', 'the body is not JSON', { cause: error });

    if (error instanceof TooLong) throw new HostError('invalid_request', error.message, { cause: error });

    throw error;
  }
}
