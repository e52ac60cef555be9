// `berth usage`: machine hours, cap and plan.
import type { Connection } from '../service/connection.ts';
import type { CliContext } from '../program/context.ts';
import { BerthError, type OrgUsage, type Subscription } from '@berth/sdk';
import { bar, hours, percent } from '../output/amount.ts';
import type { Field } from '../output/fields.ts';
import type { Style } from '../output/style.ts';
import { instant, instantUntil } from '../output/time.ts';
import type { Input } from '../program/command-spec.ts';

interface UsageInput {
  project?: string;
  endUser?: string;
}

const BAR_CELLS = 24;
const ALERT_STYLES: Readonly<Record<string, Style | undefined>> = {
  normal: 'green',
  warning: 'yellow',
  reached: 'red',
  exceeded: 'red',
};

export async function showUsage({ connect, out, signal }: CliContext, { options }: Input<UsageInput>): Promise<void> {
  const { project, endUser } = options;
  const connection = await connect();
  const query = {
    ...(project === undefined ? {} : { projectId: project }),
    ...(endUser === undefined ? {} : { endUserId: endUser }),
  };
  const usage = await connection.berth.raw.getOrgUsage({ path: { orgId: await connection.orgId() }, query, signal });
  if (out.json) return out.object(usage);
  const whose = [project && `project ${project}`, endUser && `end user ${endUser}`].filter(Boolean).join(', ');
  out.fields([
    ['scope', whose || 'the org'],
    ...planFields(await planOf(connection, signal)),
    ['period', `${instant(usage.periodStartsAt)} to ${instantUntil(usage.periodEndsAt)}`],
    ...usageFields(usage, out.columns !== undefined),
  ]);
}

function usageFields(usage: OrgUsage, bars: boolean): Field[] {
  const {
    usageAlert,
    sandboxMachineHourLimit: cap,
    remainingMachineHours: remaining,
    overageMachineHours: overage,
  } = usage;
  const style = ALERT_STYLES[usageAlert.status];
  const share = cap === null ? '' : ` of ${hours(cap)} (${percent(usageAlert.percentUsed)})`;
  return [
    ['used', `${hours(usage.usedMachineHours)}${share}`],
    ['', bars && cap !== null ? bar(usageAlert.percentUsed, BAR_CELLS) : null, style],
    ['remaining', remaining === null ? 'no cap' : hours(remaining)],
    ['alert', usageAlert.message, style],
    ...capFields(usage),
    ['overage', overage > 0 ? `${hours(overage)}${costText(usage.estimatedOverageUsd)}` : null],
  ];
}

function capFields(usage: OrgUsage): Field[] {
  const { includedMachineHours: included, sandboxMachineHourLimit: cap, sandboxMachineHourLimitOverride: set } = usage;
  return [
    ['included', included === null ? 'unlimited' : hours(included)],
    ['own cap', set === null ? 'none' : hours(set)],
    ['overage allowed', cap === null ? null : usage.sandboxOverageEnabled ? 'yes' : 'no'],
  ];
}

function costText(usd: number | null): string {
  return usd === null ? '' : `, about $${usd.toFixed(2)}`;
}

/** Resolves with null without a plan, or without permission to see it. */
async function planOf({ berth, orgId }: Connection, signal: AbortSignal): Promise<Subscription | null> {
  try {
    return (await berth.raw.getSubscription({ path: { orgId: await orgId() }, signal })).subscription;
  } catch (error) {
    if (error instanceof BerthError && (error.status === 403 || error.code === 'no_active_plan')) return null;
    throw error;
  }
}

function planFields(subscription: Subscription | null): Field[] {
  if (subscription === null) return [];
  const { plan, status, cancelsAt, provider } = subscription;
  const payment = provider === null ? '' : `, billed by ${provider}`;
  return [
    ['plan', `${plan.name}, ${status}${payment}`, status === 'active' ? undefined : 'red'],
    ['ends', cancelsAt && instantUntil(cancelsAt), 'yellow'],
  ];
}
