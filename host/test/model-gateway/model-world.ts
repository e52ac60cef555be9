// A model provider under the test's control, a VM's gateway before it, and a guest that calls it.
import { once } from 'node:events';
import { createServer, request, type IncomingMessage, type RequestOptions, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';
import { RateLimit } from '@berth/os/rate-limit.ts';
import type { ModelAccess } from '@berth/protocol/calls/model-access.ts';
import { SharedCapacity } from '@berth/protocol/shared-capacity.ts';
import { MODEL_LIMITS, type ModelLimits } from '../../src/model-gateway/limits.ts';
import { VmGateway, type SharedLimits } from '../../src/model-gateway/vm-gateway.ts';
import { freePort } from '../../../protocol/test/free-port.ts';

export const KEY = 'sk-secret-of-the-project';
/** Paths of both providers that take a body. */
export const POSTS = { openai: '/openai/v1/responses', anthropic: '/anthropic/v1/messages' } as const;

interface Reply {
  status: number;
  headers: IncomingMessage['headers'];
  text: string;
}

type Listener = (incoming: IncomingMessage, outgoing: ServerResponse) => unknown;

export function accessTo(endpoint: string, key = KEY, orgId = 'org'): ModelAccess {
  const both = { endpoint, key };
  return { orgId, asOfMs: 1, version: '1', agents: { agent_one: both, agent_two: both } };
}

/** Starts a server of the provider; resolves with its base URL. */
export async function startProvider(t: TestContext, listener: Listener): Promise<string> {
  const server = createServer((incoming, outgoing) => void listener(incoming, outgoing)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

export function sharedLimits(limits: Partial<ModelLimits> = {}): SharedLimits {
  const all = { ...MODEL_LIMITS, ...limits };
  const rates = new Map<string, RateLimit>();
  return {
    limits: all,
    places: new SharedCapacity(all.perHost),
    rateOf: (orgId) => {
      const rate = rates.get(orgId) ?? new RateLimit(all.orgPerMinute / 60, all.orgBurst);
      rates.set(orgId, rate);
      return rate;
    },
    ca: [],
  };
}

/** The gateway of a VM, as its guest sees it. */
export class GatewayOfVm {
  readonly gateway: VmGateway;
  readonly port: number;

  private constructor(gateway: VmGateway, port: number) {
    this.gateway = gateway;
    this.port = port;
  }

  static async start(t: TestContext, shared: SharedLimits, access: ModelAccess | null): Promise<GatewayOfVm> {
    const gateway = new VmGateway(shared);
    const port = await freePort();
    await gateway.listen({ address: '127.0.0.1', port });
    gateway.setAccess(access);
    t.after(() => gateway.close());
    return new GatewayOfVm(gateway, port);
  }

  /** Sends a request without a body yet. */
  open(path: string, options: RequestOptions = {}) {
    const outgoing = request({ host: '127.0.0.1', port: this.port, path, method: 'POST', agent: false, ...options });
    return outgoing.on('error', () => undefined);
  }

  /** Sends a request; resolves with its whole response. */
  async call(path: string, options: RequestOptions = {}, body = '{}'): Promise<Reply> {
    const outgoing = this.open(path, options);
    const arrived = once(outgoing, 'response') as Promise<[IncomingMessage]>;
    outgoing.end(outgoing.method === 'POST' ? body : undefined);
    const [response] = await arrived;
    const chunks = await response.toArray();
    return {
      status: response.statusCode ?? 0,
      headers: response.headers,
      text: String(Buffer.concat(chunks as Buffer[])),
    };
  }
}

/** A provider and a VM's gateway that may use it. */
export async function startWorld(
  t: TestContext,
  listener: Listener,
  limits: Partial<ModelLimits> = {},
): Promise<{ vm: GatewayOfVm; provider: string }> {
  const provider = await startProvider(t, listener);
  return { vm: await GatewayOfVm.start(t, sharedLimits(limits), accessTo(provider)), provider };
}

/** The message of an error, in the form of a provider. */
export function messageIn(provider: 'openai' | 'anthropic', text: string): string {
  const body = JSON.parse(text) as { type?: string; error: { type: string; message: string; code?: string } };
  const isForm = provider === 'openai' ? 'code' in body.error : body.type === 'error';
  return isForm ? body.error.message : `not an error of ${provider}: ${text}`;
}
