// Single sign-on of an org: mail domains, which a TXT record proves, and the requirement. Changes
// of an org are serialised by a lock of its row.
import { createHash, randomBytes } from 'node:crypto';
import { DOMAIN_CHECKS_PER_HOUR, DOMAIN_CLAIM_DAYS, DOMAINS_PER_ORG } from '@berth/contract/route/limits.ts';
import type { Actor } from '../../rules/access/access.ts';
import { requireOwnSso } from '../../rules/access/sso.ts';
import { secondsUntilTry, refilled } from '../../rules/access/throttle.ts';
import { CodedError } from '../../rules/coded-error.ts';
import { takeAttempt } from '../../store/access/throttle.ts';
import { insertActivity, type ActivityActor } from '../../store/activity/activity.ts';
import { newId } from '../../store/database/ids.ts';
import type { Database } from '../../store/database/schema.ts';
import * as store from '../../store/orgs/domains.ts';
import type { OrgDomainRow } from '../../store/orgs/domains.ts';
import { lockOrg } from '../../store/orgs/fair-shares.ts';
import type { ServiceContext } from '../context/context.ts';

export type { OrgDomainRow };

export interface Sso {
  required: boolean;
  domains: OrgDomainRow[];
}

const CHECKS = { tries: DOMAIN_CHECKS_PER_HOUR, seconds: 3_600 };
const OPERATOR: ActivityActor = { kind: 'system', id: null, userId: null };

export async function getSso({ db }: Pick<ServiceContext, 'db'>, orgId: string): Promise<Sso> {
  return { required: await store.isSsoRequired(db, orgId), domains: await store.listDomains(db, orgId) };
}

/**
 * Switches the requirement; setting the current one records nothing. Throws `sso_required` unless
 * the caller signed in by SSO, who would otherwise be locked out, and `domain_needed`.
 */
export async function updateSso(context: ServiceContext, actor: Actor, orgId: string, required: boolean): Promise<Sso> {
  return await context.db.transaction().execute(async (trx) => {
    await lockOrg(trx, orgId);
    const before = await getSso({ db: trx }, orgId);
    if (before.required === required) return before;
    if (required) {
      requireOwnSso(actor, 'only a sign-in by single sign-on can require it', context.settings);
      if (!before.domains.some(isProven))
        throw new CodedError('domain_needed', 'the org has no proven domain; claim one and prove it first');
    }
    await store.setSsoRequired(trx, orgId, required);
    await insertActivity(trx, { orgId, actor, kind: 'sso_changed', details: { required } });
    return { ...before, required };
  });
}

/**
 * Claims a domain, whether or not another org has proven it: only a proof discloses that. A
 * repeated claim returns the first. Throws `domain_limit`.
 */
export async function claimDomain(
  { db }: ServiceContext,
  actor: Actor,
  orgId: string,
  domain: string,
): Promise<OrgDomainRow> {
  return await db.transaction().execute(async (trx) => {
    await lockOrg(trx, orgId);
    await store.deleteExpiredClaims(trx, orgId);
    const present = await store.listDomains(trx, orgId);
    const same = present.find((one) => one.domain === domain);
    if (same !== undefined) return same;
    if (present.length >= DOMAINS_PER_ORG)
      throw new CodedError('domain_limit', `the org has ${DOMAINS_PER_ORG} domains, the maximum; remove one first`);
    const challenge = `berth-domain-verification=${randomBytes(20).toString('hex')}`;
    const id = newId('domain');
    const claim = await store.insertClaim(trx, { id, orgId, domain, challenge, days: DOMAIN_CLAIM_DAYS });
    await insertActivity(trx, { orgId, actor, kind: 'domain_claimed', details: { domain } });
    return claim;
  });
}

/**
 * Proves a claimed domain by its TXT record; proving a proven one queries nothing. Throws
 * `domain_not_found`, `domain_not_verified`, `domain_taken`, `sso_required` or `rate_limited`.
 */
export async function verifyDomain(
  context: ServiceContext,
  actor: Actor,
  orgId: string,
  domainId: string,
): Promise<OrgDomainRow> {
  const claim = (await store.findDomain(context.db, orgId, domainId)) ?? throwNotFound();
  if (isProven(claim)) return claim;
  await countCheck(context.db, orgId);
  await requireRecord(context, claim);
  return await context.db.transaction().execute(async (trx) => {
    await lockOrg(trx, orgId);
    // The caller's own address may be in the domain.
    if (await store.isSsoRequired(trx, orgId))
      requireOwnSso(actor, 'the org requires single sign-on, so that this change needs it', context.settings);
    const proven = await store.proveDomain(trx, { orgId, domainId });
    if (proven === 'taken')
      throw new CodedError('domain_taken', `another org has proven ${claim.domain}; ask the operator to release it`);
    // Proven or removed concurrently.
    if (proven === undefined) return (await store.findDomain(trx, orgId, domainId)) ?? throwNotFound();
    const { domain } = proven;
    await insertActivity(trx, {
      orgId,
      actor,
      kind: 'domain_verified',
      details: { domain },
    });
    return proven;
  });
}

/** Removes a domain or claim. Throws `domain_needed` for the last proven one of a requirement. */
export async function removeDomain(
  { db }: ServiceContext,
  actor: Actor,
  orgId: string,
  domainId: string,
): Promise<OrgDomainRow> {
  return await db.transaction().execute(async (trx) => {
    await lockOrg(trx, orgId);
    const { required, domains } = await getSso({ db: trx }, orgId);
    const found = domains.find(({ id }) => id === domainId) ?? throwNotFound();
    if (required && isProven(found) && domains.filter(isProven).length === 1)
      throw new CodedError('domain_needed', 'the org requires single sign-on for this domain; switch that off first');
    await store.deleteDomain(trx, domainId);
    const { domain } = found;
    await insertActivity(trx, { orgId, actor, kind: 'domain_removed', details: { domain } });
    return found;
  });
}

/** Switches the requirement off for the operator, whose owners cannot sign in. */
export async function switchSsoOff(db: Database, orgId: string): Promise<{ orgId: string; before: boolean }> {
  return await db.transaction().execute(async (trx) => {
    await lockOrg(trx, orgId);
    const before = await store.isSsoRequired(trx, orgId);
    if (!(await store.setSsoRequired(trx, orgId, false))) throw new Error(`there is no org ${orgId}`);
    if (before)
      await insertActivity(trx, { orgId, actor: OPERATOR, kind: 'sso_changed', details: { required: false } });
    return { orgId, before };
  });
}

/**
 * Name of the TXT record that proves a domain. Services that give names to their users refuse
 * underscores.
 */
export function recordName(domain: string): string {
  return `_berth-challenge.${domain}`;
}

/** The query precedes the transaction, which holds locks. */
async function requireRecord({ findTxtRecords, log }: ServiceContext, claim: OrgDomainRow): Promise<void> {
  const name = recordName(claim.domain);
  let records: string[];
  try {
    records = await findTxtRecords(name);
  } catch (error) {
    log.info({ err: error, domain: claim.domain }, 'a DNS query for a proof failed');
    throw new CodedError('domain_not_verified', `DNS did not respond to a query for the TXT record ${name}; try again`);
  }
  if (records.includes(claim.challenge)) return;
  const message = `the TXT record ${name} with the value ${claim.challenge} is missing; new records can take hours`;
  throw new CodedError('domain_not_verified', message);
}

/** Throws `rate_limited`. */
async function countCheck(db: Database, orgId: string): Promise<void> {
  const empty = await takeAttempt(db, createHash('sha256').update(`domain-check ${orgId}`).digest(), CHECKS);
  if (empty === null) return;
  const seconds = Math.max(1, secondsUntilTry(refilled(empty.tokens, empty.elapsedSeconds, CHECKS), CHECKS));
  const message = `an org can check its domains ${DOMAIN_CHECKS_PER_HOUR} times an hour; retry in ${seconds} s`;
  throw new CodedError('rate_limited', message, { retryAfterSeconds: seconds });
}

const isProven = ({ verified_at: verifiedAt }: OrgDomainRow): boolean => verifiedAt !== null;

/** Removed or expired, after the access decision. */
function throwNotFound(): never {
  throw new CodedError('domain_not_found', 'the org has no domain with this id, or its claim has expired');
}
