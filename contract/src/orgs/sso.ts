// Single sign-on of an org: its mail domains, proven by DNS, and the requirement.
import { z } from 'zod';
import { DOMAIN_CLAIM_DAYS } from '../route/limits.ts';
import { defineRoute } from '../route/route.ts';
import { idText, timestamp } from '../route/text.ts';

/** Longest name whose record is a valid DNS name. */
const LONGEST_DOMAIN = 253 - '_berth-challenge.'.length;
const LABEL = '[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?';

const domainName = z
  .string()
  .toLowerCase()
  .max(LONGEST_DOMAIN)
  // The last label begins with a letter: addresses are no domains.
  .regex(
    new RegExp(String.raw`^(?:${LABEL}\.)+(?:[a-z]|[a-z][a-z0-9-]{0,61}[a-z0-9])$`),
    'must be a domain such as example.com, in ASCII (punycode)',
  )
  .describe('Domain of mail addresses, without its subdomains; converted to lower case.');

const orgDomain = z
  .strictObject({
    id: idText,
    domain: z.string(),
    verified: z.boolean(),
    record: z
      .strictObject({ name: z.string(), value: z.string() })
      .describe('TXT record that proves the domain. It can be removed afterwards.'),
    createdAt: timestamp,
    expiresAt: timestamp.nullable().describe('End of an unproven claim; null once proven.'),
  })
  .meta({ id: 'OrgDomain', description: 'A mail domain of an org.' });
export type OrgDomain = z.infer<typeof orgDomain>;

const sso = z
  .strictObject({
    required: z.boolean().describe('Members with an address in a proven domain need a sign-in at the OIDC provider.'),
    domains: z.array(orgDomain).describe('Oldest first, without expired claims.'),
  })
  .meta({ id: 'Sso', description: 'Single sign-on of an org.' });

const orgParams = z.object({ orgId: idText });
const domainParams = z.object({ orgId: idText, domainId: idText });
const domainAnswer = z.strictObject({ domain: orgDomain });

export const getSso = defineRoute({
  name: 'getSso',
  summary: "Returns the org's single sign-on: its domains, and whether it is required",
  method: 'GET',
  path: '/v1/orgs/{orgId}/sso',
  auth: ['session'],
  permission: 'org.owners.manage',
  request: { params: orgParams },
  response: { status: 200, body: z.strictObject({ sso }) },
  errors: [],
  activity: null,
  published: false,
});

export const updateSso = defineRoute({
  name: 'updateSso',
  summary: 'Switches the requirement of single sign-on; switching it on needs a proven domain and a sign-in by SSO',
  method: 'PATCH',
  path: '/v1/orgs/{orgId}/sso',
  auth: ['session'],
  permission: 'org.owners.manage',
  freshSignIn: true,
  request: { params: orgParams, body: z.strictObject({ required: z.boolean() }) },
  response: { status: 200, body: z.strictObject({ sso }) },
  errors: ['domain_needed'],
  activity: 'sso_changed',
  published: false,
});

export const claimDomain = defineRoute({
  name: 'claimDomain',
  summary: `Claims a mail domain for ${DOMAIN_CLAIM_DAYS} days and returns the TXT record that proves it`,
  method: 'POST',
  path: '/v1/orgs/{orgId}/domains',
  auth: ['session'],
  permission: 'org.owners.manage',
  freshSignIn: true,
  request: { params: orgParams, body: z.strictObject({ domain: domainName }) },
  response: { status: 201, body: domainAnswer },
  errors: ['domain_limit'],
  activity: 'domain_claimed',
  published: false,
});

export const verifyDomain = defineRoute({
  name: 'verifyDomain',
  summary: "Queries DNS for the domain's TXT record; the first org that proves a domain has it",
  method: 'POST',
  path: '/v1/orgs/{orgId}/domains/{domainId}/verify',
  auth: ['session'],
  permission: 'org.owners.manage',
  request: { params: domainParams },
  response: { status: 200, body: domainAnswer },
  errors: ['domain_not_verified', 'domain_taken'],
  activity: 'domain_verified',
  published: false,
});

export const removeDomain = defineRoute({
  name: 'removeDomain',
  summary: 'Removes a domain; not the last proven one while single sign-on is required',
  method: 'DELETE',
  path: '/v1/orgs/{orgId}/domains/{domainId}',
  auth: ['session'],
  permission: 'org.owners.manage',
  freshSignIn: true,
  request: { params: domainParams },
  response: { status: 200, body: domainAnswer },
  errors: ['domain_needed'],
  activity: 'domain_removed',
  published: false,
});
