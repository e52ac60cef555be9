// The log of the control plane: JSON lines. Callers pass it no secrets; redaction is the second
// line of defence: fields with known names are removed, errors are logged by a fixed list of
// fields, and secret forms are cut out of the finished line.
import { pino, stdTimeFunctions, type DestinationStream, type Level, type Logger } from 'pino';
import { TOKEN_PREFIXES } from './services/access/bearer-token.ts';

const REDACTED = '[redacted]';

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
 * Secret forms, each with its replacement. The character class before a form keeps words that
 * merely end in it.
 */
const SECRET_FORMS: readonly [RegExp, string][] = [
  // A field with a secret's name and a string value, at any depth.
  [new RegExp(`"(${SECRET_NAMES.join('|')})":"(?:[^"\\\\]|\\\\.)*"`, 'gi'), `"$1":"${REDACTED}"`],
  [new RegExp(`(?<![A-Za-z0-9])(${Object.values(TOKEN_PREFIXES).join('|')})[0-9A-Za-z]{8,}`, 'g'), `$1${REDACTED}`],
  // Preview tokens: in a URL, or as a cookie.
  [/(?<![A-Za-z0-9])(bp[tc]_)[\w.-]{8,}/g, `$1${REDACTED}`],
  // The payment provider's keys and webhook secrets.
  [/(?<![A-Za-z0-9])((?:sk|rk)_(?:live|test)_|whsec_)[0-9A-Za-z]{8,}/g, `$1${REDACTED}`],
  [/\b(Bearer|Basic) +[\w.~+/=%-]{8,}/gi, `$1 ${REDACTED}`],
  // Links hold their token in the query.
  [/([?&](?:token|code|state|user_code)=)[^&\s"'\\)]+/gi, `$1${REDACTED}`],
  // The password in a URL: of a database, a mail server, a repository.
  [/(\w:\/\/[^\s:/@"'\\]*:)[^\s@/"'\\]+@/g, `$1${REDACTED}@`],
];

/** Buffer lines up to this size and age: a write per line would cost more than the line. */
const GATHERED = { minLength: 16_000, periodicFlush: 50 } as const;

/**
 * Opens a log file or descriptor. Buffered lines are written at exit, unless the process is killed.
 */
export function logInto(dest: string | number): DestinationStream {
  return pino.destination({ dest, sync: false, ...GATHERED });
}

export function openLog(level: Level | 'silent', into: DestinationStream = logInto(1)): Logger {
  const options = {
    level,
    base: { part: 'api' },
    timestamp: stdTimeFunctions.isoTime,
    // Wildcard paths cost more than the rest of a line. SECRET_FORMS finds nested fields in the
    // finished line, but only strings.
    redact: { paths: SECRET_NAMES.map((name) => (/^\w+$/.test(name) ? name : `["${name}"]`)), censor: REDACTED },
    serializers: {
      err: errorFields,
      // A URL holds tokens in its query and ids in its path: log the route's pattern.
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

/** Most lines match none: a single test instead of several. */
const ANY_SECRET = new RegExp(SECRET_FORMS.map(([form]) => form.source).join('|'), 'i');

export function withoutSecrets(line: string): string {
  if (!ANY_SECRET.test(line)) return line;
  let clean = line;
  for (const [form, instead] of SECRET_FORMS) clean = clean.replace(form, instead);
  return clean;
}

/**
 * Logged fields of an error, besides name, message and stack: codes, and Postgres's fields without
 * values.
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

function errorFields(error: unknown, depth = 0): unknown {
  if (!(error instanceof Error)) return typeof error === 'string' ? error : `a thrown ${typeof error}`;
  const told: Record<string, unknown> = { type: error.name, message: error.message, stack: error.stack };
  for (const name of ERROR_FIELDS) {
    const value: unknown = (error as unknown as Record<string, unknown>)[name];
    if (typeof value === 'string' || typeof value === 'number') told[name] = value;
  }
  if (depth === MAX_CAUSES) return told;
  if (error instanceof AggregateError)
    told['errors'] = error.errors.slice(0, MAX_CAUSES).map((one) => errorFields(one, depth + 1));
  if (error.cause !== undefined) told['cause'] = errorFields(error.cause, depth + 1);
  return told;
}
