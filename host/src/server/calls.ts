// The calls of the host daemon, each bound to a verb of the lifecycle or passed through to the
// guest daemon.
import { CALLS, type HostCall } from '@berth/protocol/calls/all.ts';
import {
  hostSchemas,
  pathOf,
  type CallSpec,
  type HostRequestOf,
  type ResponseOf,
} from '@berth/protocol/calls/define.ts';
import type { HostInfo } from '@berth/protocol/calls/vms.ts';
import { STREAM_HEADERS, STREAM_LABEL } from '@berth/protocol/calls/connections.ts';
import type { Received, Reply, ServedCall } from '@berth/protocol/http/serve.ts';
import type { Duplex, Readable } from 'node:stream';
import { AgentBridge } from '../guest/agent-bridge.ts';
import { openGuestPort, type StreamLabel } from '../guest/guest-streams.ts';
import type { GuestRequest } from '../guest/client.ts';
import { HostError } from '../vm/host-error.ts';
import { startAgent } from '../vm/lifecycle/agents.ts';
import type { VmLifecycle } from '../vm/lifecycle/lifecycle.ts';

interface CallParts {
  lifecycle: VmLifecycle;
  pool: { state(): HostInfo['pool'] };
  /** The constant part of the host's description. */
  host: Omit<HostInfo, 'capacity' | 'reserved' | 'largest' | 'pool'>;
  /** Bridge program of agent sessions; the current one by default. */
  agents?: AgentBridge;
  /** Every call of the protocol by default. */
  calls?: readonly CallSpec[];
}

/** A call as the host daemon serves it; an upgrade is handled with the stream into the guest. */
export type BoundCall = ServedCall & {
  schemas: ReturnType<typeof hostSchemas>;
  handle(received: Received): Promise<Reply | Duplex>;
};

/** Request of a call of any shape, after its schemas were checked. */
type AnyRequest = { vmId: string; epoch?: number };

type Handler = (request: AnyRequest, signal: AbortSignal, label: () => StreamLabel) => Promise<Reply | Duplex>;

type Handlers = {
  [C in HostCall as C['name']]: (
    request: HostRequestOf<C>,
    signal: AbortSignal,
    label: () => StreamLabel,
  ) => Promise<C['form'] extends 'json' ? ResponseOf<C> : C['form'] extends 'upgrade' ? Duplex : { stream: Readable }>;
};

export function hostCalls({
  lifecycle,
  pool,
  host,
  agents = new AgentBridge(),
  calls = CALLS,
}: CallParts): BoundCall[] {
  const homeOf = (vmId: string, epoch: number) => {
    const { vm, guest } = lifecycle.running(vmId, epoch);
    return { guest, models: vm.models };
  };
  const handlers: Handlers = {
    info: async () => ({ ...host, ...lifecycle.capacity(), pool: pool.state() }),
    listVms: async () => ({ vms: lifecycle.list() }),
    getVm: async ({ vmId }) => lifecycle.get(vmId),
    createVm: ({ vmId, epoch, body }) => lifecycle.create(vmId, { epoch, ...body }),
    sleepVm: ({ vmId, epoch, body }) => lifecycle.sleep(vmId, { epoch, ...body }),
    wakeVm: ({ vmId, epoch, body }) => lifecycle.wake(vmId, { epoch, ...body }),
    resizeVm: ({ vmId, epoch, body }) => lifecycle.resize(vmId, { epoch, ...body }),
    setEgress: ({ vmId, epoch, body }) => lifecycle.setEgress(vmId, { epoch, ...body }),
    destroyVm: ({ vmId, epoch }) => lifecycle.destroy(vmId, epoch),
    readConsole: ({ vmId, body }) => lifecycle.consoles.read(vmId, body.dataKey ?? null),
    sshHostKey: ({ vmId }) => lifecycle.sshHostKey(vmId),
    vmMetrics: ({ vmId }, signal) => lifecycle.metrics(vmId, signal),
    vmHistory: async ({ vmId, query }) => lifecycle.sampler.historyOf(vmId, query.windowSeconds),
    clone: async ({ vmId, epoch, body }, signal) => ({
      stream: await lifecycle.clone(vmId, { ...body, epoch }, signal),
    }),
    startAgent: async ({ vmId, epoch, params, body }, signal) => ({
      stream: await startAgent(agents, homeOf(vmId, epoch), { ...params, ...body }, signal),
    }),
    setModelAccess: async ({ vmId, epoch, body }) => {
      const { models } = homeOf(vmId, epoch);
      if (models === null) throw new HostError('agent_unsupported', 'this host has no model gateway');
      await models.setAccess(body);
      return {};
    },
    openPort: ({ vmId, params }, signal, label) =>
      lifecycle.openStream(vmId, label(), signal, (guest, opening) =>
        openGuestPort(guest, Number(params.port), opening),
      ),
    closeStreams: async ({ body }) => {
      lifecycle.closeStreams(body.streams);
      return {};
    },
  };
  const own = handlers as unknown as Record<string, Handler>;
  return calls
    .filter(({ target }) => target !== 'guest')
    .map((call) => {
      const handle = call.target === 'host' ? own[call.name] : passThrough(lifecycle, call);
      if (handle === undefined) throw new TypeError(`the call ${call.name} has no handler`);
      return {
        ...call,
        path: pathOf(call, 'host'),
        schemas: hostSchemas(call),
        handle: (received) => {
          const request = requestOf(call, received);
          return handle(request, received.signal, () => labelOf(received, request.vmId));
        },
      };
    });
}

/** Forwards a call to the guest daemon of a running VM, with the guest's secret. */
function passThrough(lifecycle: VmLifecycle, call: CallSpec): Handler {
  return async ({ vmId, epoch, ...parts }, signal, label) => {
    const request = parts as GuestRequest<CallSpec>;
    if (call.form === 'upgrade') {
      return lifecycle.openStream(vmId, label(), signal, (guest, opening) =>
        guest.open(call, request, { signal: opening }),
      );
    }

    const guest = lifecycle.running(vmId, epoch).guest;
    return call.form === 'json'
      ? ((await guest.call(call, request, { signal })) as object)
      : { stream: await guest.stream(call, request, { signal }) };
  };
}

/** The epoch of a fenced call is in the body or, without one, in the query. */
function requestOf({ fenced }: CallSpec, { params, query, body, upload }: Received): AnyRequest {
  const { vmId = '', ...rest } = params;
  if (fenced === undefined) return { vmId, params: rest, query, body, upload } as AnyRequest;
  const { epoch, ...fields } = (body ?? query) as { epoch: number };
  return { vmId, params: rest, epoch, ...(body === undefined ? {} : { body: fields }) } as AnyRequest;
}

/** Without an org, as from an API of an earlier release, the stream counts for its VM. */
function labelOf({ request: { headers } }: Received, vmId: string): StreamLabel {
  const { [STREAM_HEADERS.org]: org = vmId, [STREAM_HEADERS.stream]: stream } = headers;
  for (const label of [org, stream]) {
    if (label !== undefined && !(typeof label === 'string' && STREAM_LABEL.test(label)))
      throw new HostError('invalid_request', 'a header of the stream is invalid');
  }
  return { org, stream } as StreamLabel;
}
