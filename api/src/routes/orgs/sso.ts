// Wire format of single sign-on and mail domains.
import {
  claimDomain,
  getSso,
  removeDomain,
  updateSso,
  verifyDomain,
  type OrgDomain,
} from '@berth/contract/orgs/sso.ts';
import * as sso from '../../services/orgs/sso.ts';
import { bind } from '../../call/bind.ts';

export const ssoRoutes = [
  bind(getSso, async (context, { params }) => ({ sso: viewSso(await sso.getSso(context, params.orgId)) })),
  bind(updateSso, async (context, { actor, params, body }) => ({
    sso: viewSso(await sso.updateSso(context, actor, params.orgId, body.required)),
  })),
  bind(claimDomain, async (context, { actor, params, body }) => ({
    domain: viewDomain(await sso.claimDomain(context, actor, params.orgId, body.domain)),
  })),
  bind(verifyDomain, async (context, { actor, params }) => ({
    domain: viewDomain(await sso.verifyDomain(context, actor, params.orgId, params.domainId)),
  })),
  bind(removeDomain, async (context, { actor, params }) => ({
    domain: viewDomain(await sso.removeDomain(context, actor, params.orgId, params.domainId)),
  })),
];

function viewSso({ required, domains }: sso.Sso): { required: boolean; domains: OrgDomain[] } {
  return { required, domains: domains.map(viewDomain) };
}

function viewDomain(row: sso.OrgDomainRow): OrgDomain {
  return {
    id: row.id,
    domain: row.domain,
    verified: row.verified_at !== null,
    record: { name: sso.recordName(row.domain), value: row.challenge },
    createdAt: row.created_at.toISOString(),
    expiresAt: row.expires_at?.toISOString() ?? null,
  };
}
