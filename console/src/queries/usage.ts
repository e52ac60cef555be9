// Machine hours, caps and plan of an org.
import { queryOptions } from '@tanstack/react-query';
import type { api } from '@berth/sdk';
import { berth } from '../session/client.ts';
import { change } from './client.ts';

const POLL_MS = 180_000;

const usageOf = (orgId: string) => ['orgs', orgId, 'usage'] as const;
const billingOf = (orgId: string) => ['orgs', orgId, 'billing'] as const;

type Filter = Pick<NonNullable<api.GetOrgUsageData['query']>, 'projectId'>;

export const usageQuery = (orgId: string, filter: Filter) =>
  queryOptions({
    queryKey: [...usageOf(orgId), 'period', filter],
    queryFn: ({ signal }) => berth.raw.getOrgUsage({ path: { orgId }, query: filter, signal }),
    refetchInterval: POLL_MS,
  });

export const dailyUsageQuery = (orgId: string, filter: Filter) =>
  queryOptions({
    queryKey: [...usageOf(orgId), 'daily', filter],
    queryFn: async ({ signal }) => (await berth.raw.getDailyUsage({ path: { orgId }, query: filter, signal })).days,
    refetchInterval: POLL_MS,
  });

export const endUsersQuery = (orgId: string) =>
  queryOptions({
    queryKey: [...usageOf(orgId), 'end-users'],
    queryFn: ({ signal }) => berth.raw.getEndUserUsage({ path: { orgId }, signal }),
    refetchInterval: POLL_MS,
  });

export const setCaps = (orgId: string, body: api.UpdateUsageGuardrailsData['body']) =>
  change(berth.raw.updateUsageGuardrails({ path: { orgId }, body }), usageOf(orgId));

export const subscriptionQuery = (orgId: string) =>
  queryOptions({
    queryKey: [...billingOf(orgId), 'subscription'],
    queryFn: async ({ signal }) => (await berth.raw.getSubscription({ path: { orgId }, signal })).subscription,
    refetchInterval: POLL_MS,
  });

export const plansQuery = (orgId: string) =>
  queryOptions({
    queryKey: [...billingOf(orgId), 'plans'],
    queryFn: async ({ signal }) => (await berth.raw.listPlans({ path: { orgId }, signal })).plans,
  });

/** Opens the payment page of a plan. */
export async function checkOut(orgId: string, plan: string): Promise<void> {
  const { checkout } = await berth.raw.createCheckout({ path: { orgId }, body: { plan } });
  location.assign(checkout.url);
}
