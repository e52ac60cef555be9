// The wire between the host daemon and the guest daemon: HTTP/1.1 with JSON bodies on the guest's
// fixed address. Owns the shapes and bounds of that wire. Everything that comes from a guest is
// parsed with these schemas and never trusted.
import { z } from 'zod';
import {
  CLONE_BOX_LENGTH,
  CLONE_BRANCH_LENGTH,
  CLONE_KEY,
  CLONE_MAX_MIB,
  CLONE_MESSAGE_LENGTH,
  CLONE_TIMEOUT_SECONDS,
  CLONE_URL_LENGTH,
  EXEC_COMMAND_LENGTH,
  EXEC_OUTPUT_BYTES,
  EXEC_TIMEOUT_SECONDS,
  TERMINAL_SIGNALS,
  TERMINAL_SIZE,
} from './guest-limits.ts';

export {
  CLONE_MAX_MIB,
  CLONE_TIMEOUT_SECONDS,
  EXEC_COMMAND_LENGTH,
  EXEC_OUTPUT_BYTES,
  EXEC_TIMEOUT_SECONDS,
  GUEST_PORT,
  HIGHEST_PORT,
  PORT_STREAM,
  PORT_TEXT,
  STREAM_HEAD_BYTES,
  TERMINAL_SIGNALS,
  TERMINAL_SIZE,
  TERMINAL_STREAM,
} from './guest-limits.ts';

/**
 * Address and prefix of every guest, and its gateway (the TAP end in its own network namespace,
 * also its DNS resolver).
 */
export const GUEST_NETWORK = {
  address: '169.254.0.21',
  prefixLength: 30,
  gateway: '169.254.0.22',
  mac: '52:54:00:b0:00:01',
} as const;

/**
 * Longest answer of the guest to an exec, in bytes: two outputs whose every byte became a six byte
 * JSON escape, and room for the rest.
 */
export const EXEC_ANSWER_MAX_BYTES = 2 * 6 * EXEC_OUTPUT_BYTES + 4_096;

/**
 * `POST /identity`: what makes a restored machine its own. The daemon of a template has no secret
 * and takes the first one that is set; after that, the call needs the secret in force. Answers 200
 * with {@link guestIdentityResult} only when every part was applied and read back; otherwise 500
 * with `{ error: { message } }`, and the machine must not be used.
 */
export const guestIdentity = z.strictObject({
  /** Bearer secret of this VM from now on: 32 random bytes, base64url. */
  secret: z.string().min(43).max(64),
  hostname: z.string().regex(/^[a-z0-9][a-z0-9-]{0,62}$/),
  /** 32 lowercase hex digits. */
  machineId: z.string().regex(/^[0-9a-f]{32}$/),
  /** Milliseconds since 1970, of the host's clock at the moment of sending. */
  clockUnixMs: z.int().positive(),
  /** Random bytes for the guest's kernel pool and user-space generators: 64 bytes, base64. */
  entropy: z.string().regex(/^[0-9a-zA-Z+/]{86}==$/),
  /** One OpenSSH host key pair (ed25519). */
  sshHostKey: z.strictObject({ privateKey: z.string().max(4_096), publicKey: z.string().max(1_024) }),
  /** Public key lines for the user `berth`; empty: nobody may sign in by ssh. */
  sshAuthorizedKeys: z.array(z.string().max(16_384)).max(16),
  /**
   * What the guest must see before it counts as running: online vCPUs and memory, after hotplug.
   */
  vcpu: z.int().min(1).max(64),
  memoryMib: z.int().min(128),
  /** Size of the root disk; the file system is grown to it when it is smaller. */
  diskGib: z.int().min(1),
});
export type GuestIdentity = z.infer<typeof guestIdentity>;

/** Answer of `POST /identity`: what the guest reads back from itself after applying it. */
export const guestIdentityResult = z.object({
  hostname: z.string().max(64),
  machineId: z.string().max(64),
  clockUnixMs: z.int(),
  vcpu: z.int().min(1),
  memoryMib: z.int().min(1),
  diskGib: z.number().positive(),
});
export type GuestIdentityResult = z.infer<typeof guestIdentityResult>;

/**
 * `POST /template`: the daemon forgets its secret and is as it was before the first identity, with
 * its code warm. Needs the secret in force; asked for after rehearsing {@link guestIdentity}, of a
 * template before it is frozen and of a machine before it waits in the pool. Answers 200 with `{}`.
 */
export const guestTemplateResult = z.object({});

/**
 * `POST /wake`: after a snapshot was restored, or a disk that had an identity was booted. The names
 * and keys of the machine stay; its clock is set, its generators are reseeded, the secret is
 * replaced, every TCP connection that leaves the machine is aborted (their other ends are long
 * gone), and it is brought to the size given. Needs the secret in force before, or the one given (a
 * call that is repeated); after a boot there is none in force. Answers 200 with {@link
 * guestSizeResult}, or 500 as `POST /identity` does.
 */
export const guestWake = z.strictObject({
  secret: z.string().min(43).max(64),
  /** Milliseconds since 1970, of the host's clock at the moment of sending. */
  clockUnixMs: z.int().positive(),
  /** 64 bytes, base64. */
  entropy: z.string().regex(/^[0-9a-zA-Z+/]{86}==$/),
  vcpu: z.int().min(1).max(64),
  memoryMib: z.int().min(128),
  diskGib: z.int().min(1),
});
export type GuestWake = z.infer<typeof guestWake>;

/**
 * `POST /size`: brings online what the host has plugged in: waits for it, bounded, and reads back.
 * Answers 200 with {@link guestSizeResult} when the machine has at least what was asked for and
 * exactly the vCPUs; otherwise 500 with what it has in the message.
 */
export const guestSize = z.strictObject({
  vcpu: z.int().min(1).max(64),
  memoryMib: z.int().min(128),
  diskGib: z.int().min(1),
});
export type GuestSize = z.infer<typeof guestSize>;

/** What the guest reads back from itself. */
export const guestSizeResult = z.object({
  clockUnixMs: z.int(),
  vcpu: z.int().min(1),
  memoryMib: z.int().min(1),
  diskGib: z.number().positive(),
});
export type GuestSizeResult = z.infer<typeof guestSizeResult>;

/** `GET /metrics`. Counters count from the machine's boot. */
export const guestMetrics = z.object({
  uptimeSeconds: z.number().min(0),
  vcpu: z.int().min(1),
  /**
   * Time all vCPUs together spent at work (not idle, not waiting for the disk), in milliseconds.
   */
  cpuBusyMs: z.number().min(0),
  /** Over 1, 5 and 15 minutes. */
  load: z.tuple([z.number().min(0), z.number().min(0), z.number().min(0)]),
  memoryTotalMib: z.number().min(0),
  /** In use: neither free nor given back when somebody asks. */
  memoryUsedMib: z.number().min(0),
  diskTotalMib: z.number().min(0),
  diskUsedMib: z.number().min(0),
  networkInBytes: z.number().min(0),
  networkOutBytes: z.number().min(0),
  processes: z.int().min(0),
});
export type GuestMetrics = z.infer<typeof guestMetrics>;

/** `GET /health` (needs the secret once one is set): 200 when the daemon can run commands. */
export const guestHealth = z.object({ ok: z.literal(true), version: z.string().max(64), uptimeSeconds: z.number() });
export type GuestHealth = z.infer<typeof guestHealth>;

/**
 * `POST /exec`: one `/bin/sh -c` command in `/code` as user `berth`. Closing the connection ends
 * its process group.
 */
export const guestExecRequest = z.strictObject({
  command: z.string().min(1).max(EXEC_COMMAND_LENGTH),
  timeoutSeconds: z.int().min(EXEC_TIMEOUT_SECONDS.min).max(EXEC_TIMEOUT_SECONDS.max),
});
export type GuestExecRequest = z.infer<typeof guestExecRequest>;

/**
 * Answer of `POST /exec`. Headers are sent at once, then a space every 10 s, then this as JSON: a
 * silent command keeps its connection. `exitCode` is the shell's, 128 + n when signal n ended it,
 * 124 with `timedOut`.
 */
export const guestExecResult = z.object({
  exitCode: z.int().min(0).max(255),
  stdout: z.string(),
  stderr: z.string(),
  truncated: z.boolean(),
  timedOut: z.boolean(),
});
export type GuestExecResult = z.infer<typeof guestExecResult>;

/** Longest answer of the guest to a clone, in bytes, but for a byte for every ten seconds of it. */
export const CLONE_ANSWER_MAX_BYTES = 6 * CLONE_MESSAGE_LENGTH + 4_096;

/**
 * `POST /clone`: the repository becomes the content of `/code`, as user `berth`, with its whole
 * history. It is cloned into a folder beside that content and moved into place when all of it is
 * there, once in the life of a machine: a call that finds it done answers at once, one that finds
 * it under way waits for it. A clone whose callers are all gone is ended some seconds later. The
 * credentials are sealed to the key of `POST /clone/key` (guest/src/clones/seal.ts): the daemon
 * cannot read them. They are given out once, to git, for the host and path of the URL alone. A call
 * whose key is forgotten, of a clone that is still to be made, is broken off.
 */
export const guestClone = z.strictObject({
  url: z
    .string()
    .max(CLONE_URL_LENGTH)
    .regex(/^https?:\/\/[^\s/@?#\\]+\/[^\s?#\\]+$/),
  /** null: the one that the repository says. */
  branch: z.string().min(1).max(CLONE_BRANCH_LENGTH).nullable(),
  credentials: z
    .strictObject({
      key: z.string().regex(CLONE_KEY),
      sender: z.string().regex(CLONE_KEY),
      box: z.string().min(1).max(CLONE_BOX_LENGTH),
    })
    .nullable(),
  timeoutSeconds: z.int().min(CLONE_TIMEOUT_SECONDS.min).max(CLONE_TIMEOUT_SECONDS.max),
  /** Most that is fetched. */
  maxMib: z.int().min(CLONE_MAX_MIB.min).max(CLONE_MAX_MIB.max),
});
export type GuestClone = z.infer<typeof guestClone>;

/**
 * Why a clone failed. `access_denied`: the server wants credentials, or other ones.
 * `folder_not_empty`: `/code` has something of a name that the repository has too. `failed`: none
 * of the others.
 */
export const cloneFailureCode = z.enum([
  'repository_not_found',
  'access_denied',
  'branch_not_found',
  'network',
  'disk_full',
  'too_large',
  'timed_out',
  'folder_not_empty',
  'failed',
]);
export type CloneFailureCode = z.infer<typeof cloneFailureCode>;

/**
 * Answer of `POST /clone`, with headers and spaces as those of `POST /exec`. `message`: git's own
 * last words, unfit to be shown as they are.
 */
export const guestCloneResult = z.discriminatedUnion('outcome', [
  z.object({ outcome: z.literal('cloned') }),
  z.object({ outcome: z.literal('failed'), code: cloneFailureCode, message: z.string().max(CLONE_MESSAGE_LENGTH) }),
]);
export type GuestCloneResult = z.infer<typeof guestCloneResult>;

/** `POST /clone/key`: what the credentials of a clone that comes soon are to be sealed to. */
export const guestCloneKey = z.object({ key: z.string().regex(CLONE_KEY) });

/**
 * `POST /clone/end`: ends a clone under way, as before a sleep. Answers 200 with `{}` once git is
 * gone and the secret with it; calls that wait for the clone are broken off.
 */
export const guestCloneEnd = z.object({});

/**
 * `GET /ports/{port}` with `Upgrade: tcp`: after a 101 a raw stream of bytes to that port of the
 * machine's own loopback, 127.0.0.1 or else ::1, for programs that listen nowhere else; the end of
 * one direction is passed on and leaves the other open. Refused with 400 for what is no port, 403
 * for the daemon's own, 502 when nothing listens, 504 when whoever listens does not take the
 * connection.
 */
export const GUEST_STREAM_REFUSALS = { forbidden: 403, tooMany: 429, refused: 502 } as const;

export const terminalSize = z.strictObject({
  cols: z.int().min(TERMINAL_SIZE.min).max(TERMINAL_SIZE.max),
  rows: z.int().min(TERMINAL_SIZE.min).max(TERMINAL_SIZE.max),
});
export type TerminalSize = z.infer<typeof terminalSize>;

/**
 * What a terminal stream leads to: without a command the login shell. Without a terminal there is
 * always a command.
 */
export type TerminalAsked = ({ tty: true; command: string | null } & TerminalSize) | { tty: false; command: string };

/** As the query of a request on the internal wires, which are alike. */
export function terminalQueryOf(asked: TerminalAsked): string {
  const size = asked.tty ? { cols: String(asked.cols), rows: String(asked.rows) } : { tty: 'false' };
  return new URLSearchParams({ ...size, ...(asked.command === null ? {} : { command: asked.command }) }).toString();
}

/**
 * `GET /terminal?cols=C&rows=R[&command=...]` or `?tty=false&command=...` with `Upgrade:
 * berth-terminal`: after a 101 the login shell of `berth`, or a `/bin/sh -c` command as `POST
 * /exec` runs it, in a terminal of its own, in `/code`; or such a command with pipes. In the frames
 * of terminal-frames.ts: those of bytes are the terminal's, or go to the command's input, and from
 * it begin with the number of its stream. Control frames to the guest are {@link terminalOrder};
 * the last frame from it is {@link terminalExit}. When the connection ends before, the shell and
 * its programs get SIGHUP; of a command every process of its session does, and what is left of them
 * some seconds later gets SIGKILL. Refused with 429 when the machine has as many terminals, or
 * commands, as it may.
 */
export const terminalOrder = z.union([
  /** Of a terminal alone. */
  z.strictObject({ resize: terminalSize }),
  z.strictObject({ signal: z.enum(TERMINAL_SIGNALS) }),
  /** The end of the input; without a terminal alone. */
  z.strictObject({ end: z.literal(true) }),
]);
export type TerminalOrder = z.infer<typeof terminalOrder>;

/** The exit code of shell or command; 128 + n when signal n ended it, with its name. */
export const terminalExit = z.strictObject({ exit: z.int().min(0).max(255), signal: z.string().max(16).optional() });
export type TerminalExit = z.infer<typeof terminalExit>;

/** Body of every refused call. */
export const guestError = z.object({ error: z.object({ message: z.string().max(4_096) }) });
