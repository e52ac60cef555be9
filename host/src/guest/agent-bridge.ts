// The bridge program of agent sessions, which the host sends to guests that lack it. Bundled at the
// first start of a session, once per host daemon.
import { BRIDGE_VERSION } from '@berth/protocol/agent-errors.ts';
import { HostError } from '../vm/host-error.ts';

interface BridgeProgram {
  code: Uint8Array;
  sha256: string;
}

export interface AgentSettings {
  /** Tests only: the scripted agent takes the place of every agent. */
  scripted: boolean;
  /** Tests only: an earlier version of the bridge. */
  bridgeVersion: number;
}

export class AgentBridge {
  readonly settings: AgentSettings;
  #program: Promise<BridgeProgram> | undefined;

  constructor(settings: AgentSettings = { scripted: false, bridgeVersion: BRIDGE_VERSION }) {
    this.settings = settings;
  }

  program(): Promise<BridgeProgram> {
    this.#program ??= bundle(this.settings.bridgeVersion).catch((error: unknown) => {
      this.#program = undefined;
      throw new HostError('internal', 'the bridge program could not be bundled', { cause: error });
    });
    return this.#program;
  }
}

/** Loads the bundler on demand: a host without agent sessions does not need it. */
async function bundle(version: number): Promise<BridgeProgram> {
  const { bundleBridge } = await import('@berth/guest/bundle.ts');
  return bundleBridge(version);
}
