// Settings of the guest daemon; the only reader of its environment. In a VM no variable is set and
// the defaults apply. Tests and the fake driver run it as a local process with other values.
import { BRIDGE_IDLE_MS } from '@berth/protocol/agent-errors.ts';
import { GUEST_PORT } from '@berth/protocol/guest-limits.ts';

/** The account that commands run as. */
export interface GuestUser {
  name: string;
  uid: number;
  gid: number;
  home: string;
}

export interface GuestConfig {
  address: string;
  /** 0: any free port. */
  port: number;
  /** File that receives the chosen port, for a start with port 0. */
  portFile: string | undefined;
  /** Working directory of commands. */
  codeFolder: string;
  /** The daemon's private folder for secret and pipes, on a tmpfs. */
  runFolder: string;
  /** File on the disk that marks a guest with an identity. */
  identityMarkerFile: string;
  /** Folder on a tmpfs for a clone's credential socket; the tenant's user can traverse its path. */
  cloneFolder: string;
  /** File on the disk that records the state of the clone: being moved into place, or done. */
  cloneStateFile: string;
  /** Lifetime of a clone without callers: a restarted host daemon calls again within it. */
  cloneOrphanMs: number;
  user: GuestUser;
  /** Folder on the disk for agent sessions and their bridge programs. */
  stateFolder: string;
  /** The image's list of installed agents. */
  agentsFile: string;
  /** Parent of the cgroups of agent sessions; empty: none. */
  agentCgroups: string;
  /** A bridge without an active turn stops after this time. */
  agentIdleMs: number;
  /** Interval of the pings to a bridge; one that misses 6 is ended. */
  agentPingMs: number;
  /** false: identities (clock, hostname, ...) are only stored, so that a host is not changed. */
  appliesIdentity: boolean;
  /** Limit on running commands. */
  maxRunning: number;
  /** Limit on open terminals. */
  maxTerminals: number;
  /** Limit on outputs held open after a command's exit; the oldest beyond it is closed. */
  maxLeftOpen: number;
  /** Interval of the spaces sent while a command runs, which keep the connection alive. */
  spaceEveryMs: number;
}

/** Reads the settings; throws on an invalid value. */
export function readConfig(env: Readonly<Record<string, string | undefined>>): GuestConfig {
  return {
    address: env['BERTH_GUEST_ADDRESS'] ?? '0.0.0.0',
    port: integer(env, 'BERTH_GUEST_PORT', GUEST_PORT, 65_535),
    portFile: env['BERTH_GUEST_PORT_FILE'],
    codeFolder: env['BERTH_GUEST_CODE_FOLDER'] ?? '/code',
    runFolder: env['BERTH_GUEST_RUN_FOLDER'] ?? '/run/berth',
    identityMarkerFile: '/var/lib/berth/identity-complete',
    cloneFolder: env['BERTH_GUEST_CLONE_FOLDER'] ?? '/run/berth-clone',
    cloneStateFile: env['BERTH_GUEST_CLONE_STATE_FILE'] ?? '/var/lib/berth/clone.json',
    cloneOrphanMs: integer(env, 'BERTH_GUEST_CLONE_ORPHAN_MS', 20_000, 600_000),
    user: {
      name: env['BERTH_GUEST_USER'] ?? 'berth',
      uid: integer(env, 'BERTH_GUEST_UID', 1_000, 2 ** 32 - 2),
      gid: integer(env, 'BERTH_GUEST_GID', 1_000, 2 ** 32 - 2),
      home: env['BERTH_GUEST_HOME'] ?? '/home/berth',
    },
    stateFolder: env['BERTH_GUEST_STATE_FOLDER'] ?? '/var/lib/berth',
    agentsFile: env['BERTH_GUEST_AGENTS_FILE'] ?? '/opt/berth/agents/agents.json',
    agentCgroups: env['BERTH_GUEST_AGENT_CGROUPS'] ?? '/sys/fs/cgroup/agents',
    agentIdleMs: integer(env, 'BERTH_GUEST_AGENT_IDLE_MS', BRIDGE_IDLE_MS, 86_400_000),
    agentPingMs: integer(env, 'BERTH_GUEST_AGENT_PING_MS', 10_000, 60_000),
    appliesIdentity: oneOf(env, 'BERTH_GUEST_IDENTITY', ['apply', 'record']) === 'apply',
    maxRunning: integer(env, 'BERTH_GUEST_MAX_RUNNING', 256, 4_096),
    maxTerminals: integer(env, 'BERTH_GUEST_MAX_TERMINALS', 64, 1_024),
    maxLeftOpen: integer(env, 'BERTH_GUEST_MAX_LEFT_OPEN', 1_024, 65_536),
    spaceEveryMs: integer(env, 'BERTH_GUEST_SPACE_EVERY_MS', 10_000, 60_000),
  };
}

function integer(
  env: Readonly<Record<string, string | undefined>>,
  name: string,
  fallback: number,
  max: number,
): number {
  const text = env[name];
  if (text === undefined) return fallback;

  const value = Number(text);
  if (!/^\d+$/.test(text) || value > max)
    throw new Error(`${name} is ${JSON.stringify(text)}; it must be a whole number from 0 to ${max}`);

  return value;
}

function oneOf(
  env: Readonly<Record<string, string | undefined>>,
  name: string,
  allowed: readonly [string, ...string[]],
): string {
  const value = env[name] ?? allowed[0];
  if (!allowed.includes(value))
    throw new Error(`${name} is ${JSON.stringify(value)}; it must be one of ${allowed.join(', ')}`);

  return value;
}
