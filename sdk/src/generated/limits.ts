// Written by npm run sdk:generate from contract/. Do not edit.
// Limits of the API (spec: Limits). docs/limits.md names the test of each.

/** Limits of exec. `outputBytes`: 64 KiB each of stdout and stderr; the guest keeps the tail. */
export const EXEC_LIMITS = {
  timeoutSeconds: { default: 120, min: 1, max: 600 },
  outputBytes: 65_536,
  commandCharacters: 1_048_576,
} as const;

const MIB = 1_048_576;

/**
 * Limits of file calls. A listing is truncated at `listEntries` entries, or at `listTextBytes`
 * bytes (UTF-8) of labels and paths.
 */
export const FILE_LIMITS = {
  writeBytes: 2 * MIB,
  /** The longest content of a write as text: base64. */
  contentCharacters: 4 * Math.ceil((2 * MIB) / 3),
  readBytes: 8 * MIB,
  pathCharacters: 4_096,
  /** Bytes of the whole path in UTF-8. */
  pathBytes: 4_095,
  depth: { default: 3, min: 1, max: 5 },
  listEntries: 10_000,
  listTextBytes: 2 * MIB,
  /** Body of a write: the longest content in base64, each character escaped to six bytes. */
  bodyBytes: 6 * 4 * Math.ceil((2 * MIB) / 3) + 65_536,
  /** Limit of the silence of an upload. */
  stalledSeconds: 20,
} as const;

export const FILE_LINK_SECONDS = { default: 900, min: 60, max: 86_400 } as const;
export const METADATA_LIMITS = { keys: 24, keyCharacters: 128, valueCharacters: 1_024 } as const;
/** Entries of an egress policy, and characters of a name. */
export const EGRESS_LIMITS = { names: 64, nameCharacters: 253, ranges: 64, ports: 32 } as const;

export const NAME_CHARACTERS = 100;
export const END_USER_ID_CHARACTERS = 512;
/** Key of `getOrCreate`; room for an end user's id. */
export const SANDBOX_KEY_CHARACTERS = END_USER_ID_CHARACTERS;

/** Maximum body size of a route without `bodyBytes`. */
export const DEFAULT_BODY_BYTES = 256 * 1024;

/**
 * Default memory for bodies in flight of a process, in MiB. An org may take half of what others
 * leave.
 */
export const BODIES_IN_FLIGHT_MIB = 128;

/** Time to live of an ephemeral sandbox. The plan may set a lower maximum. */
export const TTL_SECONDS = { min: 1, max: 86_400 } as const;

/** Idle timeout of `sleep_resume` sandboxes in minutes; 0 disables it. Set per project. */
export const IDLE_MINUTES = { default: 30, min: 0, max: 43_200 } as const;

/** An `Idempotency-Key` is printable ASCII. */
export const IDEMPOTENCY_KEY = { maxCharacters: 255, keptHours: 24 } as const;

/**
 * Maximum wait of create, destroy, sleep, wake and resize for their transition. `Prefer:
 * respond-async` disables the wait.
 */
export const TRANSITION_WAIT_MS = 2_000;

/** Maximum wait of a command for the wake that it started (`wakeOnUse`). */
export const WAKE_ON_USE_WAIT_MS = 60_000;

/** Keep-alive of a long exec: when the headers are sent, and the interval of spaces after that. */
export const EXEC_KEEPALIVE_MS = { headersAfter: 5_000, spaceEvery: 10_000 } as const;

/** `Prefer: wait=N` of a long exec, in seconds: at most its timeout and the wait for a wake. */
export const PREFERRED_WAIT_SECONDS = { min: 1, max: 660 } as const;

/** Period of a history of metrics: at most what a host keeps. */
export const METRICS_WINDOW_SECONDS = { min: 10, max: 86_400, default: 3_600 } as const;

/**
 * Default rate limit: requests per minute, per credential and API replica. A token bucket, refilled
 * continuously (spec: Limits).
 */
export const REQUESTS_PER_MINUTE = 600;

/**
 * Default rate limit of all credentials of an org together, as a multiple of the limit of one
 * credential, per API replica.
 */
export const ORG_REQUESTS_FACTOR = 10;

/**
 * Default limits of the orgs that a user creates, and of the projects and usable API keys of an
 * org. Rates and plans limit each org and key, so their number needs a limit too.
 */
export const FAIR_SHARES = {
  orgsPerUser: 50,
  projectsPerOrg: 1_000,
  apiKeysPerOrg: 1_000,
  agentTokensPerUser: 100,
} as const;

/** Mail domains of an org, proven and claimed. */
export const DOMAINS_PER_ORG = 10;

/** Time in which a claimed domain must be proven. */
export const DOMAIN_CLAIM_DAYS = 7;

/** DNS queries of an org within an hour to prove its domains. */
export const DOMAIN_CHECKS_PER_HOUR = 20;

/** Revoked and expired API keys of an org, and agent tokens of a user, that lists still show. */
export const ENDED_CREDENTIALS_KEPT = 1_000;

/** Agent tokens that a user creates within an hour: each is an entry in the feeds of their orgs. */
export const AGENT_TOKENS_PER_HOUR = 60;

/** Time in which a spent refresh token still returns its successor, for a lost response. */
export const REFRESH_GRACE_SECONDS = 60;

/** Sign-ins of a user. A further one ends the least recently used. */
export const SIGN_INS_PER_USER = 100;

/** Default limits of new accounts per hour. `address`: of the network; `domain`: of the mail. */
export const SIGN_UPS_PER_HOUR = { address: 10, domain: 200 } as const;

/** Lifetime of an API key in days; without it the key does not expire (spec: API key). */
export const EXPIRES_IN_DAYS = { min: 1, max: 365 } as const;

/** Lifetime of a personal agent token in days. */
export const AGENT_TOKEN_DAYS = { default: 30, min: 1, max: 365 } as const;

/** Lifetime of an invitation. */
export const INVITATION_DAYS = 7;

/** Invitations per hour of one user: in total, and to one address. Limits unsolicited mail. */
export const INVITATIONS_PER_HOUR = { total: 200, sameAddress: 10 } as const;

export const EMAIL_CHARACTERS = 254;

/** Length of a password. There are no rules about kinds of characters. */
export const PASSWORD_CHARACTERS = { min: 12, max: 128 } as const;

/** Lifetime of the one-time links of the first start, password reset and address verification. */
export const ONE_TIME_LINK_MINUTES = { welcome: 7 * 24 * 60, reset_password: 30, verify_email: 24 * 60 } as const;

/** Maximum `limit` of a list. */
export const LIST_LIMIT = { max: 1_000 } as const;

/** Page of the hosts, and of the sandboxes of a host, which are never returned whole. */
export const HOSTS_PAGE = { default: 50, max: LIST_LIMIT.max } as const;

/** Page size of the activity feed, which is never returned whole. */
export const ACTIVITY_PAGE = { default: 50 } as const;

/** Days of a response about daily usage. */
export const USAGE_DAYS = { default: 31, min: 1, max: 92 } as const;

/** Entries of a response that follows the feed. */
export const ACTIVITY_FOLLOW = { default: 100, max: 200 } as const;

/**
 * Export of the activity feed: entries per response, and the age at which an entry is exported.
 * Entries are ordered by the start of their transaction; the delay is longer than any of them, so
 * none appears behind a cursor.
 */
export const ACTIVITY_EXPORT = { entries: LIST_LIMIT.max, delaySeconds: 120 } as const;

/** Default lifetime of an access token. */
export const ACCESS_TOKEN_MINUTES = 60;

/** Maximum number of passkeys of an account. */
export const PASSKEYS_PER_USER = 20;

/** Default age of a sign-in up to which it may create credentials, owners and admins. */
export const REAUTHENTICATION_MINUTES = 10;

/** Maximum length of `owner/repo`, and of a repository URL. */
export const REPOSITORY_CHARACTERS = { name: 200, url: 2_048 } as const;

/** Longest key of a model provider. */
export const MODEL_KEY_CHARACTERS = 1_000;

/** Maximum length of a user name or token of repository credentials. */
export const REPO_CREDENTIAL_CHARACTERS = 8_192;

/** Text of a message to an agent, and of a reply, in UTF-16 code units (spec: Limits). */
export const AGENT_TEXT_CHARACTERS = 131_072;

/** A `requestKey` has letters, digits, `.`, `_`, `:` and `-` (spec: Limits). */
export const REQUEST_KEY_CHARACTERS = { min: 8, max: 128 } as const;

/** Page of the list of agent sessions (spec: Limits), and of replies and turns. */
export const AGENT_SESSIONS_PAGE = { default: 50, max: 100 } as const;
export const AGENT_OUTPUT_PAGE = { default: 50, max: 100 } as const;

/** Hold of responses with `Prefer: wait=N`. */
export const HOLD_SECONDS = { min: 1, max: 25 } as const;

/**
 * Held responses of an API replica, of which an org takes at most half of what others leave. Those
 * about no sandbox count for their credential.
 */
export const HOLDS = { perReplica: 4_096, perSandbox: 256, perCredential: 8 } as const;

/** Details of an approval, in UTF-16 code units. */
export const AGENT_PROMPT_CHARACTERS = { short: 4_096, full: 131_072 } as const;

/** Approvals of a session that replace each other unanswered; a further one fails the turn. */
export const PROMPTS_PER_MINUTE = 10;

/** Wait of a new agent session or message for the wake that it started (`wakeOnUse`). */
export const AGENT_WAKE_WAIT_MS = 20_000;

/** Turns kept in the database: of an ended turn, and of a session. */
export const AGENT_TURNS_KEPT = { days: 30, perSession: 1_000 } as const;

/** TCP ports; `SSH_PORT` is the default of a tunnel. */
export const PORT = { min: 1, max: 65_535 } as const;
export const SSH_PORT = 22;

/**
 * Lifetime of a preview link (spec: Limits), number of unexpired public links per sandbox, and the
 * time within which revoked access closes open connections on every API replica.
 */
export const PREVIEW_SECONDS = { default: 86_400, min: 1, max: 2_592_000 } as const;
export const PREVIEW_LINKS = { outstanding: 1_000, keptDaysAfterExpiry: 30 } as const;
export const PREVIEW_REVOKED_WITHIN_MS = 2_000;
export const PREVIEW_LABEL_CHARACTERS = 100;

/**
 * Limits of previews. `connections`: per sandbox and API replica. `headBytes`: head of a request
 * and of a response. `uploadSilenceMs`: idle timeout of a request body. `answerMs`: from the end of
 * the request to the response head. `silenceMs`: idle timeout of a response with a known length;
 * `streamSilenceMs`: of other responses and of WebSockets. `startingMs`: wait for a sandbox that is
 * already starting or waking.
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

/**
 * Default limits of an address that visits previews without being a member, per API replica:
 * requests to the previews of each org, and requests in flight with open streams and WebSockets, of
 * which an org takes at most half of those that others leave. A page of a development server takes
 * hundreds of requests. The connections are fewer than those of a sandbox.
 */
export const PREVIEW_VISITORS = { requestsPerMinute: 6_000, connections: 128 } as const;

/**
 * Default limit of open connections into sandboxes (previews, tunnels, terminals) per API replica.
 * An org takes at most half of those that other orgs leave.
 */
export const API_STREAMS = 4_096;

/** Columns and rows of a terminal. */
export const TERMINAL_SIDE = { min: 1, max: 1_000 } as const;
export const TERMINAL_DEFAULT_SIZE = { cols: 80, rows: 24 } as const;
/**
 * Signals for the foreground programs of a terminal, or for a command without a terminal. The user
 * `berth` must be allowed to send them.
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

/**
 * WebSockets: maximum frame size, interval of access checks on an open connection, and interval of
 * pings. A client that has not answered a ping by the next one is disconnected. `halfOpenMs`: limit
 * of silence after one direction ended; shorter than the host's, which could not name the reason.
 * `pausedInputBytes`: limit of unread input while the client takes no output.
 */
export const WEBSOCKET = {
  frameBytes: 1_048_576,
  recheckMs: 2_000,
  pingEveryMs: 20_000,
  halfOpenMs: 25_000,
  pausedInputBytes: 2_097_152,
} as const;

/** Limits of an OpenSSH public key line. */
export const SSH_PUBLIC_KEY = {
  characters: 16_384,
  commentCharacters: 256,
  rsaBits: { min: 2_048, max: 16_384 },
} as const;
