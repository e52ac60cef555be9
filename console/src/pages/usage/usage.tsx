// Machine hours of an org in its billing period, by day and by end user, and the cap.
import { useQuery } from '@tanstack/react-query';
import { useSearchParams } from 'react-router';
import type { api } from '@berth/sdk';
import { saveWithBrowser } from '../../queries/files.ts';
import { projectsQuery } from '../../queries/orgs.ts';
import { dailyUsageQuery, endUsersQuery, setCaps, usageQuery } from '../../queries/usage.ts';
import { csvOf } from '../../rules/csv.ts';
import { usageText as text } from '../../text/usage.ts';
import { Check, DialogForm, optionsOf, SelectField, TextField, useForm } from '../../ui/forms/index.ts';
import { Bars, Button, Notice, Page, Records, Section, Untrusted, type Columns } from '../../ui/kit/index.ts';
import { Loaded, Permitted, useOrgInView } from '../frame/content.tsx';
import { Period } from './period.tsx';
import css from './usage.module.css';

export function UsagePage() {
  const { orgId, org, refusalOf } = useOrgInView();
  const [search, setSearch] = useSearchParams();
  const projectId = search.get('project') ?? '';
  const filter = projectId === '' ? {} : { projectId };
  const usage = useQuery({ ...usageQuery(orgId, filter), enabled: org?.permissions.includes('billing.read') === true });
  const { data: projects = [] } = useQuery(projectsQuery(orgId));
  const dialog = usage.data === undefined ? null : <CapsDialog usage={usage.data} />;
  return (
    <Page
      title={text.title}
      actions={
        <Button reason={refusalOf('usage_guardrails.manage')} dialog={dialog}>
          {text.caps}
        </Button>
      }
    >
      <p className={css.hint}>{text.hint}</p>
      <Permitted permission="billing.read">
        <div className={css.parts}>
          <div className={css.filter}>
            <SelectField
              label={text.project}
              value={projectId}
              options={optionsOf(projects, text.allProjects)}
              onChange={(id) => setSearch(id === '' ? {} : { project: id })}
            />
          </div>
          <Loaded query={usage}>{(found) => <Period usage={found} />}</Loaded>
          <Daily filter={filter} />
          {projectId === '' ? <EndUsers /> : null}
        </div>
      </Permitted>
    </Page>
  );
}

function Daily({ filter }: { filter: { projectId?: string } }) {
  const { orgId } = useOrgInView();
  return (
    <Section className={css.part} title={text.daily}>
      <Loaded query={useQuery(dailyUsageQuery(orgId, filter))} rows={4}>
        {(days) => {
          const total = days.reduce((sum, { machineHours }) => sum + machineHours, 0);
          const [most] = days.toSorted((one, other) => other.machineHours - one.machineHours);
          const bars = days.map(({ date, machineHours }) => ({
            key: date,
            amount: machineHours,
            title: text.onDay(date, machineHours),
          }));
          return (
            <>
              <Bars label={text.chart(total, days.length, most?.machineHours ? most.date : '')} bars={bars} />
              <div className={css.ends} aria-hidden>
                <span>{text.date(days[0]?.date ?? '')}</span>
                <span>{text.date(days.at(-1)?.date ?? '')}</span>
              </div>
              <details>
                <summary>{text.table}</summary>
                <Records
                  label={text.daily}
                  records={days.toReversed()}
                  keyOf={({ date }) => date}
                  columns={[
                    { name: text.columns.day, cell: ({ date }) => text.date(date) },
                    { name: text.columns.used, cell: ({ machineHours }) => text.hours(machineHours) },
                  ]}
                />
              </details>
            </>
          );
        }}
      </Loaded>
    </Section>
  );
}

const COLUMNS: Columns<api.EndUserUsage> = [
  { name: text.columns.endUser, cell: ({ endUserId }) => <Untrusted text={endUserId} /> },
  { name: text.columns.used, cell: ({ machineHours }) => text.hours(machineHours) },
  { name: text.columns.cost, cell: ({ estimatedCogsUsd }) => text.dollars(estimatedCogsUsd) },
];

function EndUsers() {
  const { orgId } = useOrgInView();
  return (
    <Section className={css.part} title={text.endUsers}>
      <Loaded query={useQuery(endUsersQuery(orgId))} rows={4}>
        {({ endUsers, periodStartsAt }) =>
          endUsers.length === 0 ? (
            <Notice title={text.noEndUsers} />
          ) : (
            <>
              <p>
                <Button onClick={() => download(endUsers, periodStartsAt)}>{text.csv}</Button>
              </p>
              <Records
                label={text.endUsers}
                records={endUsers}
                keyOf={({ endUserId }) => endUserId}
                columns={COLUMNS}
              />
            </>
          )
        }
      </Loaded>
    </Section>
  );
}

function download(endUsers: readonly api.EndUserUsage[], periodStartsAt: string): void {
  const rows = endUsers.map(({ endUserId, machineHours, estimatedCogsUsd }) => [
    endUserId,
    machineHours,
    estimatedCogsUsd,
  ]);
  const csv = csvOf([['endUserId', 'machineHours', 'estimatedCogsUsd'], ...rows]);
  saveWithBrowser(new Blob([csv], { type: 'text/csv' }), `usage-${periodStartsAt.slice(0, 10)}.csv`);
}

function CapsDialog({ usage }: { usage: api.OrgUsage }) {
  const { orgId } = useOrgInView();
  const form = useForm({
    limit: usage.sandboxMachineHourLimitOverride?.toString() ?? '',
    sandboxOverageEnabled: usage.sandboxOverageEnabled,
  });
  const { limit, sandboxOverageEnabled } = form.values;
  const sandboxMachineHourLimit = limit.trim() === '' ? null : Number(limit);
  const field = form.field('limit', 'body.sandboxMachineHourLimit');
  return (
    <DialogForm
      words={text.capsWords}
      form={form}
      send={() => setCaps(orgId, { sandboxMachineHourLimit, sandboxOverageEnabled })}
    >
      <TextField {...text.limit} type="number" min={0} step="any" {...field} />
      <Check label={text.overageEnabled} {...form.field('sandboxOverageEnabled')} />
    </DialogForm>
  );
}
