// Orgs and projects of the person.
import { queryOptions, useQuery } from '@tanstack/react-query';
import type { api } from '@berth/sdk';
import { berth } from '../session/client.ts';
import { queries } from './client.ts';

const ORGS_FRESH_MS = 60_000;

export const orgsQuery = queryOptions({
  queryKey: ['orgs'],
  queryFn: ({ signal }): Promise<api.Org[]> => berth.orgs({ signal }),
  staleTime: ORGS_FRESH_MS,
});

/** An org of the person; undefined for another, and until the orgs are known. */
export function useOrg(orgId: string): api.Org | undefined {
  const { data: orgs } = useQuery(orgsQuery);
  return orgs?.find(({ id }) => id === orgId);
}

export const meQuery = queryOptions({
  queryKey: ['me'],
  queryFn: ({ signal }) => berth.me({ signal }),
  staleTime: ORGS_FRESH_MS,
});

export const projectsQuery = (orgId: string) =>
  queryOptions({
    queryKey: ['orgs', orgId, 'projects'],
    queryFn: async ({ signal }) => (await berth.raw.listProjects({ path: { orgId }, signal })).projects,
    staleTime: ORGS_FRESH_MS,
  });

const refreshOrgs = () => queries.invalidateQueries({ queryKey: orgsQuery.queryKey, exact: true });

export async function createOrg(name: string): Promise<api.Org> {
  const { org } = await berth.raw.createOrg({ body: { name } });
  await refreshOrgs();
  return org;
}

export async function renameOrg(orgId: string, name: string): Promise<void> {
  await berth.raw.updateOrg({ path: { orgId }, body: { name } });
  await refreshOrgs();
}
