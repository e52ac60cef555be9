// `berth org domains`, `claim-domain`, `verify-domain`, `remove-domain` and `require-sso`.
import type { Connection } from '../service/connection.ts';
import type { CliContext } from '../program/context.ts';
import { CliFailure } from '../output/failure.ts';
import { plainText } from '../output/plain-text.ts';
import { until } from '../output/time.ts';
import type { Input } from '../program/command-spec.ts';

export async function listDomains({ connect, out, signal }: CliContext): Promise<void> {
  const { berth, orgId } = await connect();
  const answer = await berth.raw.getSso({ path: { orgId: await orgId() }, signal });
  if (out.json) return out.object(answer);
  const { required, domains } = answer.sso;
  out.table(
    [
      { title: 'domain', value: ({ domain }) => domain, whole: true },
      { title: 'proven', value: ({ verified }) => (verified ? 'yes' : 'no') },
      { title: 'claim expires', value: ({ expiresAt }) => (expiresAt === null ? null : until(expiresAt)) },
    ],
    domains,
    'no domains; claim one with berth org claim-domain DOMAIN',
  );
  out.note(required ? 'single sign-on is required for proven domains' : 'single sign-on is not required');
}

export async function claimDomain({ connect, out, signal }: CliContext, { args: [domain = ''] }: Input): Promise<void> {
  const { berth, orgId } = await connect();
  const answer = await berth.raw.claimDomain({ path: { orgId: await orgId() }, body: { domain }, signal });
  if (out.json) return out.object(answer);
  const { record, expiresAt, domain: name } = answer.domain;
  out.line(`${record.name} TXT "${record.value}"`);
  const end = expiresAt === null ? '' : ` (the claim expires ${until(expiresAt)})`;
  out.hint(`publish this record, then run: berth org verify-domain ${plainText(name)}${end}`);
}

export async function verifyDomain({ connect, out, signal }: CliContext, { args: [typed = ''] }: Input): Promise<void> {
  const connection = await connect();
  const { path, domain } = await named(connection, typed, signal);
  const answer = await connection.berth.raw.verifyDomain({ path, signal });
  if (out.json) out.object(answer);
  else out.line(`${plainText(domain.domain)} is proven`);
}

export async function removeDomain({ connect, out, signal }: CliContext, { args: [typed = ''] }: Input): Promise<void> {
  const connection = await connect();
  const { path, domain } = await named(connection, typed, signal);
  const answer = await connection.berth.raw.removeDomain({ path, signal });
  if (out.json) out.object(answer);
  else out.line(`removed ${plainText(domain.domain)}`);
}

export async function requireSso({ connect, out, signal }: CliContext, { args: [state] }: Input): Promise<void> {
  const { berth, orgId } = await connect();
  const body = { required: state === 'on' };
  const answer = await berth.raw.updateSso({ path: { orgId: await orgId() }, body, signal });
  if (out.json) out.object(answer);
  else out.line(`single sign-on is ${answer.sso.required ? '' : 'not '}required`);
}

type OrgDomain = NonNullable<Awaited<ReturnType<Connection['berth']['raw']['getSso']>>>['sso']['domains'][number];

/** Finds the org's domain by name or id. */
async function named(
  { berth, orgId }: Connection,
  typed: string,
  signal: AbortSignal,
): Promise<{ path: { orgId: string; domainId: string }; domain: OrgDomain }> {
  const org = await orgId();
  const { sso } = await berth.raw.getSso({ path: { orgId: org }, signal });
  const domain = sso.domains.find((one) => one.id === typed || one.domain === typed.toLowerCase());
  if (domain !== undefined) return { path: { orgId: org, domainId: domain.id }, domain };
  throw new CliFailure(`the org has no domain '${plainText(typed)}'`, {
    remedy: 'berth org domains lists the domains',
  });
}
