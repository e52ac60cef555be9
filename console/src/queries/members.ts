// Members of an org, and invitations to it.
import { queryOptions } from '@tanstack/react-query';
import type { api, Role } from '@berth/sdk';
import { Observed } from '../rules/page/observed.ts';
import { berth } from '../session/client.ts';
import { change, queries } from './client.ts';
import { orgsQuery } from './orgs.ts';
import { pagedQuery } from './paged.ts';

const MEMBERS_FRESH_MS = 30_000;
const PAGE_SIZE = 100;

export const membersQuery = (orgId: string) =>
  queryOptions({
    queryKey: ['orgs', orgId, 'members'],
    queryFn: async ({ signal }) => (await berth.raw.listMembers({ path: { orgId }, signal })).members,
    staleTime: MEMBERS_FRESH_MS,
  });

const invitationsOf = (orgId: string) => ['orgs', orgId, 'invitations'] as const;

export const invitationsQuery = (orgId: string) =>
  pagedQuery(
    invitationsOf(orgId),
    (page, signal) => berth.raw.listInvitations({ path: { orgId }, query: { ...page, limit: PAGE_SIZE }, signal }),
    ({ invitations }) => invitations,
  );

/** A change of one's own role changes one's permissions, and may revoke invitations. */
async function changeMember<T>(orgId: string, request: Promise<T>): Promise<T> {
  try {
    return await change(request, membersQuery(orgId).queryKey, invitationsOf(orgId));
  } finally {
    await queries.invalidateQueries({ queryKey: orgsQuery.queryKey, exact: true });
  }
}

export const changeRole = (orgId: string, userId: string, role: Role) =>
  changeMember(orgId, berth.raw.updateMember({ path: { orgId, userId }, body: { role } }));

export const removeMember = (orgId: string, userId: string) =>
  changeMember(orgId, berth.raw.removeMember({ path: { orgId, userId } }));

/** Whether the person leaves an org, and is not removed from it. */
export const leaving = new Observed(false);

export async function leaveOrg(orgId: string): Promise<void> {
  leaving.set(true);
  try {
    await berth.raw.leaveOrg({ path: { orgId } });
    queries.setQueryData(orgsQuery.queryKey, (orgs: api.Org[] | undefined) => orgs?.filter(({ id }) => id !== orgId));
  } finally {
    leaving.set(false);
  }
}

export const invite = (orgId: string, body: { email: string; role: Role }) =>
  change(berth.raw.createInvitation({ path: { orgId }, body }), invitationsOf(orgId));

export const revokeInvitation = (orgId: string, invitationId: string) =>
  change(berth.raw.revokeInvitation({ path: { orgId, invitationId } }), invitationsOf(orgId));
