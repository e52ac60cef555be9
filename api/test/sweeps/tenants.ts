// Orgs with resources of every kind and state, for tests of isolation between orgs.
import { sandboxStatus } from '@berth/contract/sandboxes/state.ts';
import { insertAgentSession } from '../../src/store/agents/sessions.ts';
import { newId } from '../../src/store/database/ids.ts';
import { insertProject } from '../../src/store/orgs/projects.ts';
import type { NewSandbox } from '../../src/store/database/schema.ts';
import { signInAs, type TestApi } from '../world/api.ts';
import {
  makeDomainRow,
  makeAgentTokenRow,
  makeInvitationRow,
  makeKeyRow,
  makePerson,
  type Ending,
  type Person,
} from '../world/people-rows.ts';

export interface Resource {
  what: string;
  id: string;
}

export interface Tenant {
  orgId: string;
  /** A live project of the org. */
  projectId: string;
  owner: Person;
  /** Resources by the name of their path parameter. */
  resources: {
    readonly [
      name in
        | 'sandboxId'
        | 'sessionId'
        | 'projectId'
        | 'keyId'
        | 'invitationId'
        | 'userId'
        | 'tokenId'
        | 'signInId'
        | 'domainId'
    ]: readonly Resource[];
  };
}

const ENDINGS: readonly Ending[] = ['live', 'revoked', 'expired'];

/** Fills an existing org. */
export async function makeTenant(api: TestApi, orgId: string): Promise<Tenant> {
  const { db } = api;
  const owner = await makePerson(db, { [orgId]: 'owner' });
  const project = async (deleted: boolean, useCase = 'internal'): Promise<string> => {
    const id = newId('project');
    await insertProject(db, { id, org_id: orgId, name: 'made by a test', use_case: useCase, created_by: owner.userId });
    if (deleted) await db.updateTable('project').set({ deleted_at: new Date() }).where('id', '=', id).execute();
    return id;
  };
  const projectId = await project(false);
  const resources: { [name in keyof Tenant['resources']]: Resource[] } = {
    sandboxId: [],
    sessionId: [],
    projectId: [
      { what: 'a project', id: projectId },
      { what: 'an external project', id: await project(false, 'external') },
      { what: 'a deleted project', id: await project(true) },
    ],
    keyId: [],
    invitationId: [],
    domainId: [],
    userId: [{ what: 'its owner', id: owner.userId }],
    tokenId: [],
    signInId: [{ what: "its owner's sign-in", id: (await signInAs(db, owner.userId)).loginId }],
  };
  const sandbox = async (
    what: string,
    status: (typeof sandboxStatus.options)[number],
    changes: Partial<NewSandbox> = {},
  ): Promise<void> => {
    const row = await api.makeSandbox(status, {
      org_id: orgId,
      project_id: projectId,
      created_by: owner.userId,
      ...changes,
    });
    resources.sandboxId.push({ what, id: row.id });
    const session = await insertAgentSession(db, row, { kind: 'session', id: 'ses_1', userId: owner.userId });
    resources.sessionId.push({ what: `a session of ${what}`, id: session.id });
  };
  for (const status of sandboxStatus.options) await sandbox(`a sandbox that is ${status}`, status);
  await sandbox('a sandbox that failed with its disk', 'failed', { wakes_from: 'disk' });
  await sandbox('an ephemeral sandbox', 'ready', {
    mode: 'ephemeral',
    ttl_seconds: 3_600,
    expires_at: new Date(Date.now() + 3_600_000),
  });
  await sandbox('a sandbox without a host', 'provisioning', { host_id: null });
  for (const ending of [...ENDINGS, 'live' as const]) {
    resources.keyId.push({
      what: `a key that is ${ending}`,
      id: (await makeKeyRow(db, { orgId, createdBy: owner.userId, ending })).id,
    });
    const { id } = await makeAgentTokenRow(db, { userId: owner.userId, ending });
    resources.tokenId.push({ what: `a personal token that is ${ending}`, id });
  }
  for (const ending of ['pending', 'pending', 'accepted', 'revoked', 'expired'] as const) {
    const { id } = await makeInvitationRow(db, { orgId, email: `${newId('user')}@example.test`, ending });
    resources.invitationId.push({ what: `an invitation that is ${ending}`, id });
  }
  for (const state of ['claimed', 'proven', 'expired'] as const)
    resources.domainId.push({ what: `a domain that is ${state}`, id: (await makeDomainRow(db, { orgId, state })).id });
  for (const role of ['admin', 'viewer'] as const)
    resources.userId.push({ what: `its ${role}`, id: (await makePerson(db, { [orgId]: role })).userId });
  return { orgId, projectId, owner, resources };
}

/** Two unused ids of the parameter's kind. */
export function unknownIds(name: keyof Tenant['resources'] | 'orgId'): Resource[] {
  const kinds = {
    orgId: 'org',
    sandboxId: 'sandbox',
    sessionId: 'agentSession',
    projectId: 'project',
    keyId: 'apiKey',
    invitationId: 'invitation',
    userId: 'user',
    tokenId: 'agentToken',
    signInId: 'signIn',
    domainId: 'domain',
  } as const;
  return [1, 2].map((number) => ({ what: `nothing (${number})`, id: newId(kinds[name]) }));
}
