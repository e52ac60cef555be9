// Machine hours of a billing period against the cap.
import type { api } from '@berth/sdk';
import { forecastOf } from '../../rules/forecast.ts';
import { usageText as text } from '../../text/usage.ts';
import { Facts, Share, useNow } from '../../ui/kit/index.ts';
import css from './usage.module.css';

/** Later versions may add alerts, which are bad. */
const TONES: Readonly<Record<string, 'bar' | 'careful'>> = { normal: 'bar', warning: 'careful' };

export function Period({ usage, heading: Heading = 'h2' }: { usage: api.OrgUsage; heading?: 'h2' | 'h3' }) {
  const { usageAlert, sandboxMachineHourLimit: cap, remainingMachineHours: remaining, usedMachineHours: used } = usage;
  const { status, message, percentUsed } = usageAlert;
  const forecast = forecastOf(usage, useNow());
  return (
    <section className={css.period} aria-labelledby="period">
      <Heading id="period">{text.ofCap(used, cap)}</Heading>
      {cap === null ? null : <Share label={message} percent={percentUsed} tone={TONES[status] ?? 'bad'} />}
      <p className={status === 'normal' ? css.hint : css.warning}>{message}</p>
      <Facts
        of={{
          [text.period]: text.periodOf(usage.periodStartsAt, usage.periodEndsAt),
          [text.facts.remaining]: remaining === null ? text.noCap : text.hours(remaining),
          [text.facts.forecast]: forecast && text.forecastOf(forecast),
          [text.facts.overage]: text.overageCost(usage.overageMachineHours, usage.estimatedOverageUsd),
          [text.facts.atCap]: cap === null ? null : usage.sandboxOverageEnabled ? text.continues : text.stops,
        }}
      />
    </section>
  );
}
