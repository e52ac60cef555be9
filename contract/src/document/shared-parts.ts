// Headers and parameters that several operations of the document refer to.
import { HOLD_SECONDS, IDEMPOTENCY_KEY, PREFERRED_WAIT_SECONDS } from '../route/limits.ts';
import { idempotencyKey } from '../route/text.ts';
import { schemaOf, type JsonSchema } from './schemas.ts';

export const SHARED_HEADERS: Readonly<Record<string, JsonSchema>> = {
  RequestId: {
    description: "Id of the request, also in the service's log.",
    schema: { type: 'string' },
    example: 'req_0123456789abcdef0123456789abcdef',
  },
  RetryAfter: { description: 'Seconds to wait before retrying.', schema: { type: 'integer', minimum: 0 } },
  RateLimit: {
    description:
      'Remaining requests of this credential, and seconds until the limit is fully restored: ' +
      '`"default";r=<remaining>;t=<seconds>`.',
    schema: { type: 'string' },
  },
  RateLimitPolicy: {
    description: 'Requests (`q`) per window of `w` seconds and credential.',
    schema: { type: 'string' },
  },
  WwwAuthenticate: { description: 'Always `Bearer`.', schema: { type: 'string' } },
  Deprecation: { description: 'Date since which the route is deprecated (RFC 9745).', schema: { type: 'string' } },
  Link: { description: 'The route to call instead (`rel="successor-version"`).', schema: { type: 'string' } },
  IdempotentReplayed: {
    description: '`true` if this is the resource of an earlier call with the same `Idempotency-Key`.',
    schema: { type: 'string' },
  },
  AcceptRanges: {
    description: '`bytes`, if ranges of this file can be requested.',
    schema: { type: 'string' },
  },
  ETag: {
    description:
      'Version of the file, for `If-Range`. Absent for generated files, and from a VM of an earlier version.',
    schema: { type: 'string' },
  },
  ContentRange: {
    description: '`bytes FIRST-LAST/SIZE`; of a range behind the end `bytes */SIZE`.',
    schema: { type: 'string' },
  },
  PreferenceApplied: { description: 'The preference of `Prefer` that was honoured.', schema: { type: 'string' } },
};

export const SHARED_PARAMETERS: Readonly<Record<string, JsonSchema>> = {
  IdempotencyKey: {
    name: 'Idempotency-Key',
    in: 'header',
    required: false,
    description:
      `A repeat with the same key and body within ${IDEMPOTENCY_KEY.keptHours} hours returns the resource of ` +
      'the first call. ' +
      'Use a new key for each resource; a call whose response was lost can then be retried safely.',
    schema: schemaOf(idempotencyKey),
  },
  Range: {
    name: 'Range',
    in: 'header',
    required: false,
    description:
      '`bytes=FIRST-LAST`, `bytes=FIRST-` or `bytes=-COUNT` for the last bytes. Several ranges, other units and ' +
      'ranges of an empty file are ignored: the response is 200 with the whole content.',
    schema: { type: 'string', examples: ['bytes=1048576-'] },
  },
  IfRange: {
    name: 'If-Range',
    in: 'header',
    required: false,
    description: 'An `ETag`. If the file has changed since, `Range` is ignored.',
    schema: { type: 'string' },
  },
  Prefer: {
    name: 'Prefer',
    in: 'header',
    required: false,
    description: '`respond-async`: respond immediately instead of waiting for the transition to finish.',
    schema: { type: 'string', examples: ['respond-async'] },
  },
  PreferWait: {
    name: 'Prefer',
    in: 'header',
    required: false,
    description:
      '`wait=N`: nothing is sent for N seconds, so that a failure within them has its own status. ' +
      `At most ${PREFERRED_WAIT_SECONDS.max}. Every proxy on the way must allow a silent response of that time.`,
    schema: { type: 'string', examples: ['wait=60'] },
  },
  PreferHold: {
    name: 'Prefer',
    in: 'header',
    required: false,
    description: `\`wait=N\`: held up to N seconds, at most ${HOLD_SECONDS.max}, until there is news.`,
    schema: { type: 'string', examples: ['wait=25'] },
  },
};
