// Plan of an org, and the plans that it can buy.
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { api } from '@berth/sdk';
import { checkOut, plansQuery, subscriptionQuery } from '../../queries/usage.ts';
import { billingText as text, usageText } from '../../text/usage.ts';
import { useCall } from '../../ui/forms/index.ts';
import { Alert, Button, Facts, Notice, Page, Records, Section, Time, type Columns } from '../../ui/kit/index.ts';
import { Loaded, useOrgInView } from '../frame/content.tsx';
import css from '../usage/usage.module.css';

export function BillingPage() {
  const { orgId } = useOrgInView();
  const subscription = useQuery(subscriptionQuery(orgId));
  return (
    <Page title={text.title}>
      <div className={css.parts}>
        <Loaded query={subscription}>{(found) => <Subscription subscription={found} />}</Loaded>
        <Plans current={subscription.data?.plan.id} />
      </div>
    </Page>
  );
}

function Subscription({ subscription }: { subscription: api.Subscription }) {
  const { plan, periodStartsAt: from, periodEndsAt: to, cancelsAt, canceledAt } = subscription;
  return (
    <Facts
      of={{
        [text.plan]: plan.name,
        [text.subscription.status]: text.statusOf(subscription.status),
        [text.subscription.period]: from === null || to === null ? text.none : usageText.periodOf(from, to),
        [text.subscription.since]: <Time at={subscription.startedAt} />,
        [text.subscription.ends]: cancelsAt && <Time at={cancelsAt} ahead />,
        [text.subscription.ended]: canceledAt && <Time at={canceledAt} />,
        [text.included]: text.amount(plan.includedMachineHours),
        [text.price]: text.priceOf(plan.overageUsdPerMachineHour),
        [text.concurrent]: text.amount(plan.concurrentSandboxes),
        [text.largest]: plan.largestSize ?? text.unlimited,
        [text.retention]: text.days(plan.activityRetentionDays),
      }}
    />
  );
}

const COLUMNS: Columns<api.ListPlansResult['plans'][number]> = [
  { name: text.plan, cell: ({ name }) => name },
  { name: text.included, cell: (plan) => text.amount(plan.includedMachineHours) },
  { name: text.price, cell: (plan) => text.priceOf(plan.overageUsdPerMachineHour) },
  { name: text.concurrent, cell: (plan) => text.amount(plan.concurrentSandboxes) },
];

function Plans({ current }: { current: string | undefined }) {
  const { orgId, refusalOf } = useOrgInView();
  const call = useCall();
  const [chosen, setChosen] = useState<string | null>(null);
  const choose = (id: string): void => {
    setChosen(id);
    call.run(() => checkOut(orgId, id));
  };
  return (
    <Section className={css.part} title={text.plans}>
      <Alert title={text.failed} error={call.error} />
      <Loaded query={useQuery(plansQuery(orgId))} rows={3} empty={<Notice title={text.nothing} />}>
        {(plans) => (
          <>
            <p className={css.hint}>{text.manageHint}</p>
            <Records
              label={text.plans}
              records={plans}
              keyOf={({ id }) => id}
              columns={COLUMNS}
              renderActions={({ id, name }) => (
                <Button
                  reason={id === current ? text.current : refusalOf('billing.manage')}
                  busy={call.isPending && chosen === id}
                  aria-label={text.buyOf(name)}
                  onClick={() => choose(id)}
                >
                  {text.buy}
                </Button>
              )}
            />
          </>
        )}
      </Loaded>
    </Section>
  );
}
