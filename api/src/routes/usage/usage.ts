// Wire format of machine time usage.
import { getDailyUsage, getEndUserUsage, getOrgUsage } from '@berth/contract/usage/usage.ts';
import { dailyUsage, endUserUsage, orgUsage } from '../../services/usage/usage.ts';
import { bind } from '../../call/bind.ts';

export const usageRoutes = [
  bind(getOrgUsage, async (context, { params, query }) => await orgUsage(context, params.orgId, query)),
  bind(getDailyUsage, async (context, { params, query: { days, ...filter } }) => ({
    days: await dailyUsage(context, params.orgId, days, filter),
  })),
  bind(getEndUserUsage, async (context, { params }) => await endUserUsage(context, params.orgId)),
];
