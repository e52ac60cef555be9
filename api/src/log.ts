// The log of the control plane: one line of JSON each. Secrets are not given to it in the first
// place; this is the second line of defence: known names are taken out, errors are told by a fixed
// list of their fields, and what has the form of a secret is cut out of the finished line.
import { pino, stdTimeFunctions, type DestinationStream, type Level, type Logger } from 'pino';
import { TOKEN_PREFIXES } from './services/access/bearer-token.ts';

const TAKEN_OUT = '[taken out]';

const SECRET_NAMES = [
  'authorization',
  'cookie',
  'set-cookie',
  'password',
  'token',
  'accessToken',
  'access_token',
  'refreshToken',
  'refresh_token',
  'idToken',
  'id_token',
  'clientSecret',
  'client_secret',
  'deviceCode',
  'device_code',
  'credential',
  'credentials',
  'secret',
  'headers',
  'body',
];

/**
 * What is cut out of lines, and what stays of it. A class of characters before a form keeps words
 * that merely end in it.
 */
const SECRET_FORMS: readonly [RegExp, string][] = [
  // A secret name with text, however deep it stands.
  [new RegExp(`"(${SECRET_NAMES.join('|')})":"(?:[^"\\\\]|\\\\.)*"`, 'gi'), `"$1":"${TAKEN_OUT}"`],
  [new RegExp(`(?<![A-Za-z0-9])(${Object.values(TOKEN_PREFIXES).join('|')})[0-9A-Za-z]{8,}`, 'g'), `$1${TAKEN_OUT}`],
  // What opens a preview: in a URL, or as a cookie.
  [/(?<![A-Za-z0-9])(bp[tc]_)[\w.-]{8,}/g, `$1${TAKEN_OUT}`],
  // Of the payment provider: its keys, and what its events are signed with.
  [/(?<![A-Za-z0-9])((?:sk|rk)_(?:live|test)_|whsec_)[0-9A-Za-z]{8,}/g, `$1${TAKEN_OUT}`],
  [/\b(Bearer|Basic) +[\w.~+/=%-]{8,}/gi, `$1 ${TAKEN_OUT}`],
  // Links hold their token in the query.
  [/([?&](?:token|code|state|user_code)=)[^&\s"'\\)]+/gi, `$1${TAKEN_OUT}`],
  // The password in a URL: of a database, a mail server, a repository.
  [/(\w:\/\/[^\s:/@"'\\]*:)[^\s@/"'\\]+@/g, `$1${TAKEN_OUT}@`],
];

/**
 * Lines are gathered until there are so many bytes of them, or so long: a write for each would cost
 * more than the line.
 */
const GATHERED = { minLength: 16_000, periodicFlush: 50 } as const;

/**
 * Where a log goes: a file, or a file descriptor. What is still gathered is written when the
 * process ends, unless it is killed.
 */
export function logInto(dest: string | number): DestinationStream {
  return pino.destination({ dest, sync: false, ...GATHERED });
}

/** The log, at the level. */
export function openLog(level: Level | 'silent', into: DestinationStream = logInto(1)): Logger {
  const options = {
    level,
    base: { part: 'api' },
    timestamp: stdTimeFunctions.isoTime,
    // Paths with a wildcard cost more than the rest of a line: of what lies deeper, text alone is
    // found, in the finished line.
    redact: { paths: SECRET_NAMES.map((name) => (/^\w+$/.test(name) ? name : `["${name}"]`)), censor: TAKEN_OUT },
    serializers: {
      err: tellError,
      // A URL holds tokens in its query, and ids in its path: routes are told by their pattern.
      req: (request: { method?: string; routeOptions?: { url?: string } }) => ({
        method: request.method,
        path: request.routeOptions?.url,
      }),
      res: (reply: { statusCode?: number }) => ({ status: reply.statusCode }),
    },
    hooks: { streamWrite: withoutSecrets },
  };
  return pino(options, into);
}

/** Most lines have none of them: one look instead of several. */
const ANY_SECRET = new RegExp(SECRET_FORMS.map(([form]) => form.source).join('|'), 'i');

/** A line as it may be written. */
export function withoutSecrets(line: string): string {
  if (!ANY_SECRET.test(line)) return line;
  let clean = line;
  for (const [form, instead] of SECRET_FORMS) clean = clean.replace(form, instead);
  return clean;
}

/**
 * What is told of an error beside its name, message and stack: Postgres's fields that hold no
 * values, and codes.
 */
const ERROR_FIELDS = [
  'code',
  'severity',
  'schema',
  'table',
  'column',
  'constraint',
  'routine',
  'syscall',
  'errno',
  'status',
  'statusCode',
];
const MAX_CAUSES = 5;

function tellError(error: unknown, depth = 0): unknown {
  if (!(error instanceof Error)) return typeof error === 'string' ? error : `a thrown ${typeof error}`;
  const told: Record<string, unknown> = { type: error.name, message: error.message, stack: error.stack };
  for (const name of ERROR_FIELDS) {
    const value: unknown = (error as unknown as Record<string, unknown>)[name];
    if (typeof value === 'string' || typeof value === 'number') told[name] = value;
  }
  if (depth === MAX_CAUSES) return told;
  if (error instanceof AggregateError)
    told['errors'] = error.errors.slice(0, MAX_CAUSES).map((one) => tellError(one, depth + 1));
  if (error.cause !== undefined) told['cause'] = tellError(error.cause, depth + 1);
  return told;
}
