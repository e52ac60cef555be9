// Limits of the guest wire; those of the public API derive from the contract. Imports no package:
// the guest daemon bundles this file, and zod would cost every VM 12 MB of memory and delay its
// first command by milliseconds.
export { PROCESS_LIMITS } from '@berth/contract/route/command-options.ts';
export { FILE_CHANGES, FILE_KINDS, FILE_WATCH_CURSOR, FILE_WATCH_LIMITS } from '@berth/contract/route/file-watch.ts';
import { EXEC_LIMITS, FILE_LIMITS, REPO_CREDENTIAL_CHARACTERS } from '@berth/contract/route/limits.ts';

/**
 * Version of the internal protocols; a call names the version that introduced it. A host speaks to
 * guests of this version and of all before it, because sandboxes sleep for years, but to none after
 * it.
 */
export const PROTOCOL_VERSION = 12;

/** TCP port of the guest daemon. Below 1024, so unprivileged tenant processes cannot bind it. */
export const GUEST_PORT = 987;

/** Bytes kept of each of stdout and stderr: the tail (spec: Limits, exec output). */
export const EXEC_OUTPUT_BYTES = EXEC_LIMITS.outputBytes;
/** Longest command, in UTF-16 code units. */
export const EXEC_COMMAND_LENGTH = EXEC_LIMITS.commandCharacters;

/** Reasons why a command is refused, with their HTTP status on the internal wires. */
export const COMMAND_ERRORS = {
  command_cwd_invalid: 400,
  command_user_unknown: 400,
  command_program_invalid: 400,
} as const;
export type CommandErrorCode = keyof typeof COMMAND_ERRORS;

export const PROCESS_ID = /^prc_[a-z2-7]{20,40}$/;
/**
 * Refusals of calls of processes, with their HTTP status. `process_over`: it has ended, or reads no
 * input. `process_input_gap`: the offset is beyond the input so far.
 */
export const PROCESS_ERRORS = {
  process_not_found: 404,
  process_over: 409,
  process_input_gap: 409,
  process_input_full: 409,
  process_has_no_terminal: 409,
  process_limit: 429,
  guest_disk_full: 507,
} as const;
export type ProcessErrorCode = keyof typeof PROCESS_ERRORS;

/** Limit of a repository URL, and of a branch name, in UTF-16 code units. */
export const CLONE_URL_LENGTH = 4_096;
export const CLONE_BRANCH_LENGTH = 255;
/** Limit of a clone's user name or token, in UTF-16 code units. */
export const CLONE_SECRET_LENGTH = REPO_CREDENTIAL_CHARACTERS;
/** An x25519 public key as SPKI in DER, in base64. */
export const CLONE_KEY = /^[0-9a-zA-Z+/]{59}=$/;
/** Limit of the sealed credentials, in base64: both with every character escaped. */
export const CLONE_BOX_LENGTH = 160_000;
export const CLONE_TIMEOUT_SECONDS = { min: 1, max: 86_400 } as const;
/** Bounds of the fetched bytes, in MiB. */
export const CLONE_MAX_MIB = { min: 1, max: 1_048_576 } as const;
/** Limit of git's output in a response, in UTF-16 code units. */
export const CLONE_MESSAGE_LENGTH = 2_000;
/** Last bytes of git's output that a guest keeps, and limit of their text in UTF-16 code units. */
export const CLONE_OUTPUT_BYTES = 16_384;

/** A TCP port in a path: digits only, no sign, no leading zero, at most 65535. */
export const PORT_TEXT = /^(?:[1-9]\d{0,3}|[1-5]\d{4}|6[0-4]\d{3}|65[0-4]\d{2}|655[0-2]\d|6553[0-5])$/;

/**
 * Limit of a request head on the internal wires: a command in the query of a public request (16
 * KiB), every character escaped again.
 */
export const STREAM_HEAD_BYTES = 65_536;

/** Limits of a file read, and of a file write. */
export const FILE_READ_BYTES = FILE_LIMITS.readBytes;
export const FILE_WRITE_BYTES = FILE_LIMITS.writeBytes;
/** Limit of an absolute path: Linux's PATH_MAX without the terminator. */
export const FILE_PATH_BYTES = FILE_LIMITS.pathBytes;
/** Limits that truncate a listing. `textBytes`: total of all names and paths, in UTF-8. */
export const FILE_LIST = {
  entries: FILE_LIMITS.listEntries,
  textBytes: FILE_LIMITS.listTextBytes,
  seconds: 10,
} as const;
/** Time limit of a file call in the guest, including its time in the queue. */
export const FILE_CALL_SECONDS = 30;
/** Concurrent and queued file calls of a guest; further calls are refused. */
export const FILE_CALLS = { atOnce: 8, waiting: 64 } as const;
/** The same for transfers of any length, which do not take the places of other calls. */
export const FILE_TRANSFERS = { atOnce: 4, waiting: 16 } as const;
/** Limit of a transfer: the largest integer of the wire. The disk is the real limit. */
export const FILE_TRANSFER_BYTES = Number.MAX_SAFE_INTEGER;
/** Condition of a write: the path does not exist, or has content of this SHA-256. */
export const FILE_CONDITION = /^(?:absent|[0-9a-f]{64})$/;

/** Requests of a guest that wait for a change; further ones get their response at once. */
export const FILE_WATCH_WAITING = 32;
/** Time limit of the search for folders that begins a watch. */
export const FILE_WATCH_BEGIN_SECONDS = 20;

/** Permission bits in octal. */
export const FILE_MODE = /^0[0-7]{3}$/;

/**
 * Refusals of file calls, with their HTTP status on the internal wires. `file_system_error`: any
 * other error of the guest's kernel, named by `errno`. `guest_busy`: over the limits of {@link
 * FILE_CALLS}. `watch_too_large`: more folders than {@link FILE_WATCH_LIMITS}. `watch_limit`: more
 * watches, or the tenant's programs leave no inotify watch.
 */
export const FILE_ERRORS = {
  file_path_invalid: 400,
  not_a_file: 400,
  not_a_directory: 400,
  file_access_denied: 403,
  file_not_found: 404,
  file_changed: 409,
  file_exists: 409,
  folder_not_empty: 409,
  watch_too_large: 409,
  file_too_large: 413,
  guest_busy: 429,
  watch_limit: 429,
  file_system_error: 500,
  guest_disk_full: 507,
} as const;
export type FileErrorCode = keyof typeof FILE_ERRORS;

/** Exit code of a command or process that its timeout killed. */
export const TIMED_OUT_EXIT_CODE = 124;
