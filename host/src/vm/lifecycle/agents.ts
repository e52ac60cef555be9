// Starts agent sessions in a VM's guest. Sends the bridge program to a guest that lacks it, so that
// sandboxes of an old image run the current one.
import { Readable } from 'node:stream';
import { guestStartAgent, putBridge, type AgentStart } from '@berth/protocol/calls/agents.ts';
import type { AgentBridge } from '../../guest/agent-bridge.ts';
import { GuestRefusal, type GuestClient } from '../../guest/client.ts';
import { HostError } from '../host-error.ts';
import type { VmModels } from '../owned/owned-vm.ts';

type AgentStartOrder = AgentStart & { sessionId: string };

/** The parts of a running VM that a session uses; `models` is null without a model gateway. */
interface AgentHome {
  guest: GuestClient;
  models: Pick<VmModels, 'urlFor'> | null;
}

/** Resolves when the guest has accepted the start, with its response as a stream. */
export async function startAgent(
  bridge: AgentBridge,
  { guest, models }: AgentHome,
  { sessionId, gateway, ...start }: AgentStartOrder,
  signal: AbortSignal,
): Promise<Readable> {
  const { scripted } = bridge.settings;
  if (gateway && models === null) throw new HostError('agent_unsupported', 'this host has no model gateway');
  const gatewayUrl = gateway && models !== null ? await models.urlFor(start.agent) : null;

  const { code, sha256 } = await bridge.program();
  const request = { params: { sessionId }, body: { ...start, gatewayUrl, bridge: sha256, scripted } };
  try {
    return await guest.stream(guestStartAgent, request, { signal });
  } catch (error) {
    const isOfTerminal = start.surface === 'terminal';
    if (error instanceof GuestRefusal && (error.status === 404 || (isOfTerminal && error.status === 400))) {
      const what = isOfTerminal ? 'terminals of agents' : 'agent sessions';
      throw new HostError('agent_unsupported', `this sandbox has a guest daemon without ${what}`, {
        cause: error,
      });
    }
    if (!(error instanceof HostError && error.code === 'agent_bridge_missing')) throw error;
  }
  const upload = { bytes: code.length, content: Readable.from([Buffer.from(code)]) };
  await guest.call(putBridge, { params: { sha256 }, upload }, { signal });
  return guest.stream(guestStartAgent, request, { signal });
}
