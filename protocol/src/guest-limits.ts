// Limits of the guest wire. Imports nothing: the guest daemon bundles this file, because zod would
// cost every VM 12 MB of memory and its first command some milliseconds.

/**
 * TCP port of the guest daemon. Below 1024: an unprivileged process of the tenant cannot take it
 * over.
 */
export const GUEST_PORT = 987;

/** Bytes kept of each of stdout and stderr (spec: Limits, exec output). The tail is kept. */
export const EXEC_OUTPUT_BYTES = 65_536;
export const EXEC_TIMEOUT_SECONDS = { default: 120, min: 1, max: 600 } as const;
/** Longest command, in UTF-16 code units. */
export const EXEC_COMMAND_LENGTH = 1_048_576;

/** Longest URL of a repository, and longest branch name, in UTF-16 code units. */
export const CLONE_URL_LENGTH = 4_096;
export const CLONE_BRANCH_LENGTH = 255;
/** Longest user name or token that a clone signs in with, in UTF-16 code units. */
export const CLONE_SECRET_LENGTH = 8_192;
/** An x25519 public key as SPKI in DER, in base64. */
export const CLONE_KEY = /^[0-9a-zA-Z+/]{59}=$/;
/** Longest box of sealed credentials, in base64: both with every character escaped. */
export const CLONE_BOX_LENGTH = 160_000;
export const CLONE_TIMEOUT_SECONDS = { min: 1, max: 86_400 } as const;
/** Most that may be fetched, in MiB. */
export const CLONE_MAX_MIB = { min: 1, max: 1_048_576 } as const;
/** Longest of git's own words in an answer, in UTF-16 code units. */
export const CLONE_MESSAGE_LENGTH = 2_000;

/** A TCP port in a path: digits alone, no sign, no leading zero, at most 65535. */
export const PORT_TEXT = /^(?:[1-9]\d{0,3}|[1-5]\d{4}|6[0-4]\d{3}|65[0-4]\d{2}|655[0-2]\d|6553[0-5])$/;

/**
 * Longest head of a request on the internal wires: a command in the query of a public request (16
 * KiB), every character escaped once more.
 */
export const STREAM_HEAD_BYTES = 65_536;
/** Columns and rows of a terminal. */
export const TERMINAL_SIZE = { min: 1, max: 1_000 } as const;
/**
 * What can be sent to the programs in the foreground of a terminal, as far as `berth` may send it
 * to them; and to a command without one.
 */
export const TERMINAL_SIGNALS = [
  'SIGHUP',
  'SIGINT',
  'SIGQUIT',
  'SIGKILL',
  'SIGUSR1',
  'SIGUSR2',
  'SIGTERM',
  'SIGCONT',
  'SIGTSTP',
  'SIGWINCH',
] as const;

/** Longest file that is read, and longest that is written, at once. */
export const FILE_READ_BYTES = 8_388_608;
export const FILE_WRITE_BYTES = 2_097_152;
/** Longest absolute path: Linux's own limit (PATH_MAX) without the end mark. */
export const FILE_PATH_BYTES = 4_095;
/** How many levels of folders a listing goes down; 1: the folder alone. */
export const FILE_LIST_DEPTH = { min: 1, max: 5 } as const;
/** Where a listing is cut off. `textBytes`: of all names and of all paths together, in UTF-8. */
export const FILE_LIST = { entries: 10_000, textBytes: 2_097_152, seconds: 10 } as const;
/** Longest that the guest works on one file call, its time in the queue included. */
export const FILE_CALL_SECONDS = 30;
/**
 * File calls of one guest: so many are worked on at once, so many more wait for their turn, and the
 * rest is refused.
 */
export const FILE_CALLS = { atOnce: 8, waiting: 64 } as const;

/**
 * Why a file call was refused, with its HTTP status on the internal wires. `file_system_error`:
 * anything else that the guest's kernel said no with; `errno` names it. `guest_busy`: more calls at
 * once than {@link FILE_CALLS}.
 */
export const FILE_ERRORS = {
  file_path_invalid: 400,
  not_a_file: 400,
  not_a_directory: 400,
  file_access_denied: 403,
  file_not_found: 404,
  file_too_large: 413,
  guest_busy: 429,
  file_system_error: 500,
  guest_disk_full: 507,
} as const;
export type FileErrorCode = keyof typeof FILE_ERRORS;
