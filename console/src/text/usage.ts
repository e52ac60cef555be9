// Texts of usage and billing.
import type { Forecast } from '../rules/forecast.ts';

const number = new Intl.NumberFormat('en', { maximumFractionDigits: 1 });
const exact = new Intl.NumberFormat('en', { maximumFractionDigits: 3 });
const dollars = new Intl.NumberFormat('en', { style: 'currency', currency: 'USD' });
const day = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeZone: 'UTC' });

const hours = (amount: number): string => `${(amount < 1 ? exact : number).format(amount)} h`;
const date = (at: string): string => day.format(new Date(at));

const STATUSES: Readonly<Record<string, string>> = {
  active: 'Active',
  past_due: 'Payment failed; the provider retries',
  canceled: 'Ended',
};

export const usageText = {
  title: 'Usage',
  hint: 'One machine hour is one hour of one awake sandbox of any size. Sleeping sandboxes use none.',
  project: 'Project',
  allProjects: 'All projects',
  hours,
  dollars: (amount: number) => dollars.format(amount),
  ofCap: (used: number, cap: number | null) =>
    cap === null ? `${hours(used)}, without a cap` : `${hours(used)} of ${hours(cap)}`,
  noCap: 'no cap',
  forecastOf: ({ machineHours, capAt }: Forecast) =>
    `${hours(machineHours)} by the end of the period${capAt === null ? '' : `; the cap is reached on ${date(capAt)}`}`,
  overageCost: (amount: number, cost: number | null) =>
    cost === null ? hours(amount) : `${hours(amount)}, about ${dollars.format(cost)}`,
  period: 'Period',
  facts: { remaining: 'Remaining', forecast: 'At this pace', overage: 'Beyond the plan', atCap: 'At the cap' },
  periodOf: (from: string, to: string) => `${date(from)} to ${date(to)} (UTC)`,
  continues: 'sandboxes continue',
  stops: 'awake sandboxes fall asleep, and no more start',
  caps: 'Change cap',
  toCap: 'Usage and cap of the org',
  capsWords: {
    title: 'Change the cap of the org',
    hint: 'Machine hours per billing period. Projects have caps of their own.',
    submit: 'Save',
    failed: 'The cap was not changed',
    done: 'The cap is changed',
  },
  limit: { label: 'Machine hours', hint: 'Empty: the cap of the plan.' },
  overageEnabled: 'Let sandboxes continue beyond the cap',
  daily: 'By day (UTC)',
  chart: (total: number, days: number, most: string) =>
    `${hours(total)} in ${days} days; most on ${most === '' ? 'no day' : date(most)}`,
  onDay: (at: string, amount: number) => `${date(at)}: ${hours(amount)}`,
  table: 'Show the figures',
  columns: { day: 'Day', endUser: 'End user', used: 'Used', cost: 'Estimated cost' },
  date,
  endUsers: 'By end user',
  noEndUsers: 'No sandbox of an end user was awake in this period.',
  csv: 'Download CSV',
} as const;

export const billingText = {
  title: 'Billing',
  plan: 'Plan',
  subscription: { status: 'Status', period: 'Billing period', since: 'Since', ends: 'Ends', ended: 'Ended' },
  statusOf: (status: string) => STATUSES[status] ?? status,
  none: 'none',
  included: 'Machine hours included',
  unlimited: 'no limit',
  amount: (amount: number | null) => (amount === null ? 'no limit' : exact.format(amount)),
  price: 'Price beyond them',
  priceOf: (price: number | null) => (price === null ? 'none' : `${dollars.format(price)} per machine hour`),
  concurrent: 'Sandboxes awake at once',
  largest: 'Largest sandbox',
  retention: 'Activity is kept',
  days: (count: number | null) => (count === null ? 'without limit' : `${count} days`),
  plans: 'Plans',
  nothing: 'This installation sells no plans. Its operator assigns them.',
  buy: 'Choose',
  buyOf: (name: string) => `Choose ${name}`,
  current: 'This is the plan of the org.',
  failed: 'The payment page was not opened',
  manageHint: 'The payment provider shows the price before you pay.',
} as const;
