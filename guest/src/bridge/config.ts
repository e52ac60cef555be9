// Settings that the guest daemon gives a bridge, as JSON in its only argument. No secret.
import type { GuestUser } from '../machine/config.ts';

/** Installed programs of an agent, from the image's list. */
export interface AgentProgram {
  version: string;
  paths: Readonly<Record<string, string>>;
}

export interface BridgeConfig {
  sessionId: string;
  /** Folder of the session's files. */
  folder: string;
  /** Path of the socket for the guest daemon. */
  socket: string;
  agent: string;
  /** Absent from guest daemons before version 12, which have managed sessions only. */
  surface?: 'managed' | 'terminal';
  /** `recover`: a terminal needs its saved conversation. Absent from earlier guest daemons. */
  mode?: 'create' | 'recover';
  /** Tests only: the scripted agent takes the place of the agent. */
  scripted: boolean;
  program: AgentProgram;
  gatewayUrl: string | null;
  user: GuestUser;
  codeFolder: string;
  /** Cgroup of the session's processes; null without cgroups. */
  cgroup: string | null;
  /** True: this process is protected from the OOM killer, its agent is not. */
  isProtected: boolean;
  /** A bridge without an active turn stops after this time. */
  idleMs: number;
}
