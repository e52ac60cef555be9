// Credentials of every kind and state for the access sweep, with their holder, role and grants.
// Contains no expected responses.
import { agentTokenPermissions, type AgentToken } from '@berth/contract/access/agent-tokens.ts';
import { permission, role, type Permission, type Role } from '@berth/contract/route/permissions.ts';
import { AUTH_KINDS, type AuthKind } from '@berth/contract/route/route.ts';
import { newToken } from '../../src/services/access/bearer-token.ts';
import { deleteLogin } from '../../src/store/access/session-tokens.ts';
import { signInAs, type TestApi, type TestOrg } from '../world/api.ts';
import { makeAgentTokenRow, makeKeyRow, makePerson, type Person } from '../world/people-rows.ts';

/** Valid credential. */
export interface LiveCredential {
  what: string;
  kind: AuthKind;
  token: string;
  holder: Person;
  /** Id of the key or agent token; null for a sign-in session. */
  credentialId: string | null;
  /** Holder's current role in the sweep's org; null for a non-member. */
  role: Role | null;
  /** Maximal permissions; null for those of the role. */
  grants: ReadonlySet<Permission> | null;
  /** Valid in another org only. */
  boundElsewhere: boolean;
}

/** Invalid or expired credential. */
interface DeadCredential {
  what: string;
  kind: null;
  /** `Authorization` header; null for none. */
  authorization: string | null;
}

export type Credential = LiveCredential | DeadCredential;

const AGENT_TOKENS: readonly Pick<AgentToken, 'access' | 'canApprove' | 'canWake'>[] = [
  { access: 'read_only', canApprove: false, canWake: false },
  { access: 'read_send', canApprove: false, canWake: false },
  { access: 'read_send', canApprove: true, canWake: false },
  { access: 'read_send', canApprove: false, canWake: true },
  { access: 'read_send', canApprove: true, canWake: true },
];
const EVERY_GRANT = { access: 'read_send', canApprove: true, canWake: true } as const;

/**
 * Live credentials around the API's first org. Members of the first org are not members of `other`,
 * unless stated.
 */
export async function makeLiveCredentials(api: TestApi, other: TestOrg): Promise<LiveCredential[]> {
  const made: LiveCredential[] = [];
  const here = (name: Role | null): { readonly [orgId: string]: Role } => (name === null ? {} : { [api.orgId]: name });

  const session = async (what: string, holder: Person, holderRole: Role | null): Promise<void> => {
    const { token } = await signInAs(api.db, holder.userId);
    made.push({
      what,
      kind: 'session',
      token,
      holder,
      credentialId: null,
      role: holderRole,
      grants: null,
      boundElsewhere: false,
    });
  };
  const key = async (
    what: string,
    holder: Person,
    holderRole: Role | null,
    scopes: Permission[] | null,
    orgId = api.orgId,
  ): Promise<void> => {
    const { id, token } = await makeKeyRow(api.db, { orgId, createdBy: holder.userId, scopes });
    const grants = scopes === null ? null : new Set(scopes);
    made.push({
      what,
      kind: 'api_key',
      token,
      holder,
      credentialId: id,
      role: holderRole,
      grants,
      boundElsewhere: orgId !== api.orgId,
    });
  };
  const agentToken = async (
    what: string,
    holder: Person,
    holderRole: Role | null,
    given: (typeof AGENT_TOKENS)[number],
  ): Promise<void> => {
    const { id, token } = await makeAgentTokenRow(api.db, { userId: holder.userId, ...given });
    const grants = agentTokenPermissions(given);
    made.push({
      what,
      kind: 'agent_token',
      token,
      holder,
      credentialId: id,
      role: holderRole,
      grants,
      boundElsewhere: false,
    });
  };

  for (const name of role.options) {
    await session(`session of ${name}`, await makePerson(api.db, here(name)), name);
    await key(`unscoped key of ${name}`, await makePerson(api.db, here(name)), name, null);
  }
  const owner = await makePerson(api.db, here('owner'));
  const viewer = await makePerson(api.db, here('viewer'));
  for (const scope of permission.options) {
    await key(`key of owner scoped ${scope}`, owner, 'owner', [scope]);
    await key(`key of viewer scoped ${scope}`, viewer, 'viewer', [scope]);
  }
  await key('key of owner scoped []', owner, 'owner', []);
  await key('key of owner with every scope', owner, 'owner', permission.options);
  for (const [name, holder] of [
    ['owner', owner],
    ['viewer', viewer],
  ] as const)
    for (const given of AGENT_TOKENS) await agentToken(`${JSON.stringify(given)} of ${name}`, holder, name, given);

  // The current role decides, not the role at the time of creation.
  const demoted = await makePerson(api.db, here('owner'));
  await session('session of one who was owner and is viewer', demoted, 'viewer');
  await key('key of one who was owner and is viewer', demoted, 'viewer', null);
  await key('key with every scope of one who was owner and is viewer', demoted, 'viewer', permission.options);
  await agentToken('personal token of one who was owner and is viewer', demoted, 'viewer', EVERY_GRANT);
  await api.db.updateTable('membership').set({ role: 'viewer' }).where('user_id', '=', demoted.userId).execute();
  const removed = await makePerson(api.db, here('owner'));
  await session('session of one who was owner and was removed', removed, null);
  await key('key of one who was owner and was removed', removed, null, null);
  await agentToken('personal token of one who was owner and was removed', removed, null, EVERY_GRANT);
  await api.db.deleteFrom('membership').where('user_id', '=', removed.userId).execute();

  await session('session of a member of no org', await makePerson(api.db), null);
  const stranger = await makePerson(api.db, { [other.orgId]: 'owner' });
  await session("session of another org's owner", stranger, null);
  await key("key of another org's owner for that org", stranger, null, null, other.orgId);
  await agentToken("personal token of another org's owner", stranger, null, EVERY_GRANT);
  const both = await makePerson(api.db, { [api.orgId]: 'owner', [other.orgId]: 'viewer' });
  await key('key for another org, of an owner of this one too', both, 'owner', null, other.orgId);
  await key('key for this org, of its owner who is a viewer of another', both, 'owner', null);
  const elsewhere = await makePerson(api.db, { [api.orgId]: 'viewer', [other.orgId]: 'owner' });
  await session('session of a viewer who is an owner of another org', elsewhere, 'viewer');
  await agentToken('personal token of a viewer who is an owner of another org', elsewhere, 'viewer', EVERY_GRANT);
  return made;
}

/** Credentials that every route refuses. */
export async function makeDeadCredentials(api: TestApi): Promise<DeadCredential[]> {
  const { db, orgId } = api;
  const { userId } = await makePerson(db, { [orgId]: 'owner' });
  const dead: DeadCredential[] = [];
  const header = (what: string, authorization: string | null): void =>
    void dead.push({ what, kind: null, authorization });
  const bearer = (what: string, token: string): void => header(what, `Bearer ${token}`);

  header('no token', null);
  header('an empty header', '');
  header('the word Bearer alone', 'Bearer');
  header('two tokens', `Bearer ${newToken('api_key')} ${newToken('api_key')}`);
  header('another scheme than Bearer', 'Basic YTpi');
  bearer('a token of a kind unknown here', 'ghp_0123456789');
  for (const kind of AUTH_KINDS) {
    bearer(`a well-formed ${kind} token that nobody has`, newToken(kind));
    bearer(`a ${kind} token with a wrong checksum`, flipped(newToken(kind)));
  }

  const { token: keyToken } = await makeKeyRow(db, { orgId, createdBy: userId });
  bearer('a key without its scheme of a live key', keyToken.replace('brt_', 'bst_'));
  header('a live key that is not called a bearer token', keyToken);
  header('a live key under the scheme Basic', `Basic ${Buffer.from(`${keyToken}:`).toString('base64')}`);
  bearer('a live key with a character too many', `${keyToken}0`);
  for (const ending of ['revoked', 'expired'] as const) {
    bearer(`a key that is ${ending}`, (await makeKeyRow(db, { orgId, createdBy: userId, ending })).token);
    bearer(
      `a personal token that is ${ending}`,
      (await makeAgentTokenRow(db, { userId, ending, ...EVERY_GRANT })).token,
    );
  }
  bearer('a session token that has expired', (await signInAs(db, userId, -1)).token);
  const late = await signInAs(db, userId);
  await db
    .updateTable('session')
    .set({ expiresAt: new Date(Date.now() - 1_000) })
    .where('id', '=', late.loginId)
    .execute();
  bearer('a session token whose login has expired', late.token);
  const signedOut = await signInAs(db, userId);
  const { token: ownToken } = await db
    .selectFrom('session')
    .select('token')
    .where('id', '=', late.loginId)
    .executeTakeFirstOrThrow();
  bearer('what a login is stored under', ownToken);
  await deleteLogin(db, signedOut.loginId);
  bearer('a session token that was signed out', signedOut.token);

  const gone = await makePerson(db, { [orgId]: 'owner' });
  bearer('a session of an account that is gone', (await signInAs(db, gone.userId)).token);
  bearer('a key of an account that is gone', (await makeKeyRow(db, { orgId, createdBy: gone.userId })).token);
  bearer(
    'a personal token of an account that is gone',
    (await makeAgentTokenRow(db, { userId: gone.userId, ...EVERY_GRANT })).token,
  );
  await db.deleteFrom('membership').where('user_id', '=', gone.userId).execute();
  await db.deleteFrom('user').where('id', '=', gone.userId).execute();
  return dead;
}

/** Changes the last character, part of the checksum. */
function flipped(token: string): string {
  return token.slice(0, -1) + (token.endsWith('0') ? '1' : '0');
}
