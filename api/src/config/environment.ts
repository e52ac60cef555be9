// Environment variables of the control plane, with defaults and bounds. Only config.ts reads them;
// it documents their meaning.
import { isIP } from 'node:net';
import {
  ACCESS_TOKEN_MINUTES,
  API_STREAMS,
  BODIES_IN_FLIGHT_MIB,
  FAIR_SHARES,
  PREVIEW_VISITORS,
  REAUTHENTICATION_MINUTES,
  REQUESTS_PER_MINUTE,
  SIGN_UPS_PER_HOUR,
} from '@berth/contract/route/limits.ts';
import { MOST_FAIR_SHARE, MOST_ORG_REQUESTS } from '@berth/contract/billing/plans.ts';
import { isLoopback } from '@berth/os/loopback.ts';
import { CLONE_MAX_MIB, CLONE_TIMEOUT_SECONDS } from '@berth/protocol/guest.ts';
import { z } from 'zod';

export const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;

const GIT_HOST = '[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::[1-9]\\d{0,4})?';
const GIT_BASE_URL = new RegExp(`^https?://${GIT_HOST}(?:/[A-Za-z0-9._~-]+)*/?$`);
const MODEL_ENDPOINT = `(?:openai|anthropic)=https?://${GIT_HOST}(?:/[A-Za-z0-9._~-]+)*/?`;
const MODEL_ENDPOINTS = new RegExp(`^${MODEL_ENDPOINT}(?: *, *${MODEL_ENDPOINT})*$`);
/** A host without a scheme means https; http must be explicit. */
const GIT_ORIGINS = new RegExp(`^(?:https?://)?${GIT_HOST}(?: *, *(?:https?://)?${GIT_HOST})*$`);

/** Schema of an origin URL. */
const originText = (error: string) =>
  z
    .url({ protocol: /^https?$/, error })
    .refine(
      (url) => URL.canParse(url) && new URL(url).href === `${new URL(url).origin}/`,
      'must have no path, query or user name',
    );

/** Schema of a whole number. Its error names the bounds. */
const whole = (min: number, max: number) => {
  const error = `must be a whole number from ${min.toLocaleString('en-US')} to ${max.toLocaleString('en-US')}`;
  return z.coerce.number({ error }).int({ error, abort: true }).min(min, { error }).max(max, { error });
};

/** Variables of every command. */
export const databaseEnvironment = z.object({
  BERTH_DATABASE_URL: z.string().startsWith('postgres', 'must be a URL postgres://...'),
  BERTH_LOG_LEVEL: z.enum(LOG_LEVELS).default('info'),
});

/** Variables of commands about the secrets. */
export const secretsEnvironment = databaseEnvironment.extend({
  BERTH_HOST_TOKEN_FILE: z.string().min(1),
  BERTH_SECRET_KEY_FILE: z.string().optional(),
  BERTH_SECRET_KEY_COMMAND: z.string().optional(),
});

/** Additional variables of `serve`. */
export const serveEnvironment = secretsEnvironment.extend({
  BERTH_LISTEN: z.string().min(1).default('127.0.0.1'),
  BERTH_PORT: whole(0, 65_535).default(4_800),
  BERTH_DATABASE_CONNECTIONS: whole(2, 1_000).default(20),
  BERTH_HOST_URL: z
    .string()
    .regex(/^(unix:\/.+|http:\/\/.+)$/, 'must be unix:/path or http://address:port')
    .refine((url) => url.startsWith('unix:') || URL.canParse(url), 'must be unix:/path or http://address:port'),
  BERTH_HOST_PLAINTEXT: z.enum(['0', '1']).default('0'),
  BERTH_PLANS_FILE: z.string().optional(),
  BERTH_PUBLIC_URL: originText('must be the public http or https URL of the service').optional(),
  BERTH_PREVIEW_URL: originText('must be the http or https URL whose subdomains serve previews').optional(),
  BERTH_PREVIEW_COOKIES: z.enum(['proven', 'all']).optional(),
  BERTH_CONSOLE_FOLDER: z.string().optional(),
  BERTH_REQUESTS_PER_MINUTE: whole(1, 1_000_000).default(REQUESTS_PER_MINUTE),
  BERTH_ORG_REQUESTS_PER_MINUTE: whole(1, MOST_ORG_REQUESTS).optional(),
  BERTH_BODIES_IN_FLIGHT_MIB: whole(32, 65_536).default(BODIES_IN_FLIGHT_MIB),
  BERTH_API_STREAMS: whole(1, 1_000_000).default(API_STREAMS),
  BERTH_VISITOR_REQUESTS_PER_MINUTE: whole(1, 10_000_000).default(PREVIEW_VISITORS.requestsPerMinute),
  BERTH_VISITOR_CONNECTIONS: whole(1, 1_000_000).default(PREVIEW_VISITORS.connections),
  BERTH_ORGS_PER_USER: whole(0, MOST_FAIR_SHARE).default(FAIR_SHARES.orgsPerUser),
  BERTH_PROJECTS_PER_ORG: whole(1, MOST_FAIR_SHARE).default(FAIR_SHARES.projectsPerOrg),
  BERTH_API_KEYS_PER_ORG: whole(1, MOST_FAIR_SHARE).default(FAIR_SHARES.apiKeysPerOrg),
  BERTH_AGENT_TOKENS_PER_USER: whole(1, 1_000_000).default(FAIR_SHARES.agentTokensPerUser),
  BERTH_SESSION_TOKEN_MINUTES: whole(1, 1_440).default(ACCESS_TOKEN_MINUTES),
  BERTH_REAUTHENTICATE_MINUTES: whole(0, 43_200).default(REAUTHENTICATION_MINUTES),
  BERTH_SIGN_UP: z.enum(['invited', 'open']).default('invited'),
  BERTH_SIGN_UPS_PER_ADDRESS: whole(1, 100_000).default(SIGN_UPS_PER_HOUR.address),
  BERTH_SIGN_UPS_PER_DOMAIN: whole(1, 100_000).default(SIGN_UPS_PER_HOUR.domain),
  BERTH_CAP_GRACE_SECONDS: whole(0, 86_400).default(300),
  BERTH_TRUSTED_PROXIES: z.string().default('').transform(addressList),
  BERTH_SMTP_URL: z
    .string()
    .regex(/^smtps?:\/\//, 'must be a URL smtp://... or smtps://...')
    .optional(),
  BERTH_SMTP_URL_FILE: z.string().optional(),
  BERTH_MAIL_FROM: z.string().min(3).default('Berth <berth@localhost>'),
  BERTH_OUTBOX_FOLDER: z.string().min(1).default('outbox'),
  BERTH_OIDC_ISSUER: z.url({ protocol: /^https?$/, error: 'must be the URL of the issuer' }).optional(),
  BERTH_OIDC_CLIENT_ID: z.string().optional(),
  BERTH_OIDC_CLIENT_SECRET_FILE: z.string().optional(),
  BERTH_OIDC_NAME: z.string().min(1).max(60).default('single sign-on'),
  BERTH_GIT_BASE_URL: z
    .string()
    .regex(GIT_BASE_URL, 'must be an https URL (or an http one) without user name, query and fragment')
    .default('https://github.com'),
  BERTH_MODEL_ENDPOINTS: z
    .string()
    .regex(MODEL_ENDPOINTS, 'must be comma-separated openai=URL or anthropic=URL, http or https, without a query')
    .default('openai=https://api.openai.com,anthropic=https://api.anthropic.com'),
  BERTH_GIT_ALLOW_URLS: z
    .string()
    .regex(
      GIT_ORIGINS,
      'must be comma-separated hosts such as git.example.com, git.example.com:8443 or http://git.example.com',
    )
    .optional(),
  BERTH_CLONE_TIMEOUT_SECONDS: whole(CLONE_TIMEOUT_SECONDS.min, CLONE_TIMEOUT_SECONDS.max).default(1_800),
  BERTH_CLONE_MAX_MIB: whole(CLONE_MAX_MIB.min, CLONE_MAX_MIB.max).default(10_240),
  BERTH_STRIPE_SECRET_KEY_FILE: z.string().optional(),
  BERTH_STRIPE_WEBHOOK_SECRET_FILE: z.string().optional(),
  BERTH_STRIPE_API_URL: z
    .url({ protocol: /^https?$/, error: 'must be the URL of a server with the Stripe API' })
    .refine(
      (url) => !URL.canParse(url) || new URL(url).protocol === 'https:' || isLoopback(new URL(url).hostname),
      'must be https or a loopback address: the secret key is sent there',
    )
    .optional(),
  BERTH_CRASH_AT: z.string().optional(),
});

/** Parses addresses and networks separated by commas. */
function addressList(text: string, context: z.RefinementCtx<string>): string[] {
  const entries = text.split(',').map((entry) => entry.trim());
  const given = entries.filter((entry) => entry !== '');
  const wrong = given.filter((entry) => {
    const [address = '', bits, ...more] = entry.split('/');
    const version = isIP(address);
    const mostBits = version === 4 ? 32 : 128;
    return (
      version === 0 ||
      more.length > 0 ||
      (bits !== undefined && !(/^\d{1,3}$/.test(bits) && Number(bits) >= 1 && Number(bits) <= mostBits))
    );
  });
  if (wrong.length > 0) {
    context.addIssue({
      code: 'custom',
      message: `${wrong.join(', ')}: must be addresses or networks such as 10.0.0.5 or 10.0.0.0/8`,
    });
  }

  return given;
}
