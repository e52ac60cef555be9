// Wire format of machine time usage.
import { getEndUserUsage, getOrgUsage } from '@berth/contract/usage/usage.ts';
import { endUserUsage, orgUsage } from '../../services/usage/usage.ts';
import { bind } from '../../call/bind.ts';

export const usageRoutes = [
  bind(getOrgUsage, async (context, { params, query }) => await orgUsage(context, params.orgId, query)),
  bind(getEndUserUsage, async (context, { params }) => await endUserUsage(context, params.orgId)),
];
