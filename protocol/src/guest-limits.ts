// The numbers of the guest wire. Imports nothing: the guest daemon bundles this file alone, because zod would cost every machine 12 MB of
// memory and its first command some milliseconds. Everybody else imports them from `guest.ts`.

/** TCP port of the guest daemon. Below 1024: an unprivileged process of the tenant cannot take it over. */
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
export const CLONE_TIMEOUT_SECONDS = { min: 1, max: 86_400 } as const;
/** Most that may be fetched, in MiB. */
export const CLONE_MAX_MIB = { min: 1, max: 1_048_576 } as const;
/** Longest of git's own words in an answer, in UTF-16 code units. */
export const CLONE_MESSAGE_LENGTH = 2_000;
