// The guest daemon's settings: the only reader of its environment. In a machine nothing is set and
// the defaults are the machine's; tests and the fake driver run the same daemon as a local process
// with other values.
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
  /** Where the port that was taken is written, for who started the daemon with port 0. */
  portFile: string | undefined;
  /** Folder that commands start in. */
  codeFolder: string;
  /** Folder of the daemon alone, on a tmpfs: secret and pipes. */
  runFolder: string;
  /** File on the disk that marks a machine that has its identity. */
  identityMarkerFile: string;
  /**
   * Folder for the credential socket of a clone, made when there is one: on a tmpfs, its way open
   * to the tenant's user.
   */
  cloneFolder: string;
  /**
   * File on the disk that says how far the clone has come, when it is being moved into place or is
   * done.
   */
  cloneStateFile: string;
  /**
   * How long a clone goes on without callers: a host daemon that is started again is back by then,
   * and asks again.
   */
  cloneOrphanMs: number;
  user: GuestUser;
  /**
   * Whether an identity is applied to the machine (clock, hostname, keys, disk ...) or only kept: a
   * local process must not touch its machine.
   */
  appliesIdentity: boolean;
  /** Commands under way at once. */
  maxRunning: number;
  /** Terminals open at once. */
  maxTerminals: number;
  /**
   * Outputs of ended commands that background processes still hold; the oldest beyond it is closed.
   */
  maxLeftOpen: number;
  /**
   * While a command runs, its answer gets a space this often, so that nobody on the way takes the
   * connection for dead.
   */
  spaceEveryMs: number;
}

/** Reads the settings; throws on a value that cannot be meant. */
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
