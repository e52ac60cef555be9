// Single sign-on of an org: its mail domains, and the requirement.
import { queryOptions } from '@tanstack/react-query';
import { berth } from '../session/client.ts';
import { change } from './client.ts';

export const ssoQuery = (orgId: string) =>
  queryOptions({
    queryKey: ['orgs', orgId, 'sso'],
    queryFn: async ({ signal }) => (await berth.raw.getSso({ path: { orgId }, signal })).sso,
  });

const changeSso = <T>(orgId: string, request: Promise<T>) => change(request, ssoQuery(orgId).queryKey);

export const requireSso = (orgId: string, required: boolean) =>
  changeSso(orgId, berth.raw.updateSso({ path: { orgId }, body: { required } }));

export const claimDomain = (orgId: string, domain: string) =>
  changeSso(orgId, berth.raw.claimDomain({ path: { orgId }, body: { domain } }));

export const verifyDomain = (orgId: string, domainId: string) =>
  changeSso(orgId, berth.raw.verifyDomain({ path: { orgId, domainId } }));

export const removeDomain = (orgId: string, domainId: string) =>
  changeSso(orgId, berth.raw.removeDomain({ path: { orgId, domainId } }));
