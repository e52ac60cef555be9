// Numbers that the API promises (spec: Limits), and the bounds on text it takes. docs/limits.md
// names the test of each.

/** Bounds of an exec. `outputBytes` holds for each of stdout and stderr; the tail is kept. */
export const EXEC_LIMITS = {
  timeoutSeconds: { default: 120, min: 1, max: 600 },
  outputBytes: 65_536,
  commandCharacters: 1_048_576,
} as const;

const MIB = 1_048_576;

/**
 * Bounds of file calls. `listEntries` and `listTextBytes` (of all labels and paths together, in
 * UTF-8) are where a listing is cut off.
 */
export const FILE_LIMITS = {
  writeBytes: 2 * MIB,
  readBytes: 8 * MIB,
  pathCharacters: 4_096,
  /** Of the whole path, in UTF-8. */
  pathBytes: 4_095,
  depth: { default: 3, min: 1, max: 5 },
  listEntries: 10_000,
  listTextBytes: 2 * MIB,
  /**
   * Body of a write: the longest content in base64, every character as a six byte JSON escape, and
   * the rest.
   */
  bodyBytes: 6 * 4 * Math.ceil((2 * MIB) / 3) + 65_536,
} as const;

export const METADATA_LIMITS = { keys: 24, keyCharacters: 128, valueCharacters: 1_024 } as const;

export const NAME_CHARACTERS = 100;
export const END_USER_ID_CHARACTERS = 512;

/** Longest body taken by a route that does not set its own. */
export const DEFAULT_BODY_BYTES = 256 * 1024;

/** Bounds of an ephemeral sandbox's time to live. The plan's session cap may be lower. */
export const TTL_SECONDS = { min: 1, max: 86_400 } as const;

/**
 * Minutes without a sign of use after which a `sleep_resume` sandbox goes to sleep by itself; 0
 * turns it off. Set per project.
 */
export const IDLE_MINUTES = { default: 30, min: 0, max: 43_200 } as const;

/** An `Idempotency-Key` is printable ASCII, and remembered this long. */
export const IDEMPOTENCY_KEY = { maxCharacters: 255, keptHours: 24 } as const;

/**
 * How long create, destroy, sleep, wake and resize hold their answer for the transition to end;
 * `Prefer: respond-async` answers at once.
 */
export const TRANSITION_WAIT_MS = 2_000;

/**
 * How long a command waits for a stopped sandbox to be woken for it, where the project's
 * `wakeOnUse` is on.
 */
export const WAKE_ON_USE_WAIT_MS = 60_000;

/**
 * After this long an exec without a result gets its headers, and then a space at each interval, so
 * that silent connections live.
 */
export const EXEC_KEEPALIVE_MS = { headersAfter: 5_000, spaceEvery: 10_000 } as const;

/**
 * Requests a minute of one credential and API instance: the default, a token bucket refilled
 * continuously (spec: Limits). Configurable.
 */
export const REQUESTS_PER_MINUTE = 600;

/** How long an API key may live; without a number it does not expire (spec: API key). */
export const EXPIRES_IN_DAYS = { min: 1, max: 365 } as const;

/** How long a personal agent token lives. */
export const AGENT_TOKEN_DAYS = { default: 30, min: 1, max: 365 } as const;

/** How long an invitation can be accepted. */
export const INVITATION_DAYS = 7;

/**
 * Invitations that one person may send within an hour: in all, and to one address. Each is a mail
 * to somebody who may not know the sender.
 */
export const INVITATIONS_PER_HOUR = { total: 200, sameAddress: 10 } as const;

export const EMAIL_CHARACTERS = 254;

/** Of the password of an account. No rule about kinds of characters: length is what counts. */
export const PASSWORD_CHARACTERS = { min: 12, max: 128 } as const;

/**
 * How long the links work that open a page once: of the first start, of a password reset, of the
 * verification of an address.
 */
export const ONE_TIME_LINK_MINUTES = { welcome: 7 * 24 * 60, reset_password: 30, verify_email: 24 * 60 } as const;

/** Entries of a list's page, where `limit` asks for one; without it a list is whole. */
export const LIST_LIMIT = { max: 1_000 } as const;

/** The activity feed is always read in pages. */
export const ACTIVITY_PAGE = { default: 50 } as const;

/** How long a session token is good for, in minutes: the default. Configurable. */
export const SESSION_TOKEN_MINUTES = 60;

/** Longest `owner/repo`, and longest URL of a repository. */
export const REPOSITORY_CHARACTERS = { name: 200, url: 2_048 } as const;

/** Longest user name and token of a repository's credentials. */
export const REPO_CREDENTIAL_CHARACTERS = 8_192;

/** A TCP port of a sandbox; without one a tunnel goes to its ssh server. */
export const PORT = { min: 1, max: 65_535 } as const;
export const SSH_PORT = 22;

/**
 * How long a preview link is good for (spec: Limits), public links of one sandbox that are
 * outstanding at once, and how soon a link that was revoked, or whose person may not see the
 * sandbox any more, opens nothing and holds nothing open, on every API instance.
 */
export const PREVIEW_SECONDS = { default: 86_400, min: 1, max: 2_592_000 } as const;
export const PREVIEW_LINKS = { outstanding: 1_000, keptDaysAfterExpiry: 30 } as const;
export const PREVIEW_REVOKED_WITHIN_MS = 2_000;
export const PREVIEW_LABEL_CHARACTERS = 100;

/**
 * What passes between a browser and an app in a sandbox. `connections`: into one sandbox at once,
 * of one API instance. `headBytes`: of a request, and of an answer. `uploadSilenceMs`: without a
 * byte of a request's body; `answerMs`: from a request's end to the head of its answer;
 * `silenceMs`: without a byte of an answer whose length was said; `streamSilenceMs`: of any other
 * answer, and of a WebSocket. `startingMs`: how long a visit waits for a sandbox that is starting
 * or being woken anyhow.
 */
export const PREVIEW_PROXY = {
  connections: 256,
  headBytes: 16_384,
  uploadSilenceMs: 60_000,
  answerMs: 120_000,
  silenceMs: 120_000,
  streamSilenceMs: 3_600_000,
  startingMs: 10_000,
} as const;

/** Columns and rows of a terminal. */
export const TERMINAL_SIDE = { min: 1, max: 1_000 } as const;
export const TERMINAL_DEFAULT_SIZE = { cols: 80, rows: 24 } as const;

/**
 * WebSockets: the longest frame taken, how often one that is open is held against its credential,
 * permission and sandbox, and how often its other end is asked whether it is still there; one that
 * has not answered by the next time is cut.
 */
export const WEBSOCKET = { frameBytes: 1_048_576, recheckMs: 2_000, pingEveryMs: 20_000 } as const;

/** An OpenSSH public key line. */
export const SSH_PUBLIC_KEY = {
  characters: 16_384,
  commentCharacters: 256,
  rsaBits: { min: 2_048, max: 16_384 },
} as const;
