// Every text of the console.
import type { Possibility, SandboxAction } from '../rules/sandbox-actions.ts';
import type { Duration } from '../rules/duration.ts';
import type { LabelFault } from '../rules/labels.ts';
import { inZone } from '../rules/page/zone.ts';

const relative = new Intl.RelativeTimeFormat('en', { numeric: 'always', style: 'narrow' });
const plural = new Intl.PluralRules('en');
const conjunction = new Intl.ListFormat('en');
const list = new Intl.ListFormat('en', { type: 'disjunction' });

const STATUSES: Readonly<Record<string, string>> = {
  provisioning: 'Starting',
  running: 'Setting up',
  ready: 'Ready',
  sleeping: 'Falling asleep',
  stopped: 'Asleep',
  waking: 'Waking',
  failed: 'Failed',
  destroying: 'Deleting',
  deleted: 'Deleted',
};

const statusOf = (status: string): string => STATUSES[status] ?? status;
const ACTIONS: Readonly<Record<SandboxAction, string>> = {
  sleep: 'Sleep',
  wake: 'Wake',
  resize: 'Resize',
  renew: 'Renew',
  destroy: 'Delete',
};

const ERASES = 'Its memory and disk are erased. This cannot be undone.';
const failed = (action: SandboxAction): string => `${ACTIONS[action]} failed`;
const sandboxes = (count: number, more = ''): string =>
  `${count}${more} ${plural.select(count) === 'one' ? 'sandbox' : 'sandboxes'}`;

const forbidden = (permission: string, roles: readonly string[]): string =>
  `Needs the permission ${permission}. The ${roles.length === 1 ? 'role' : 'roles'} ` +
  `${conjunction.format([...roles])} ${roles.length === 1 ? 'has' : 'have'} it; ` +
  'an owner or admin can change yours.';

/** Why an action is not possible; null if it is. */
function why(possibility: Possibility, roles: readonly string[]): string | null {
  if (possibility.kind === 'possible') return null;
  if (possibility.kind === 'forbidden') return forbidden(possibility.permission, roles);
  if (possibility.kind === 'not-ephemeral') return 'Only ephemeral sandboxes expire, and can be renewed.';
  if (possibility.kind === 'nothing-to-wake') return 'Neither memory nor disk are left to wake from.';
  const now = statusOf(possibility.status).toLowerCase();
  if (possibility.done) return `The sandbox is ${now} already.`;
  const then = list.format(possibility.statuses.map((status) => statusOf(status).toLowerCase()));
  return `Not possible while the sandbox is ${now}; possible while it is ${then}.`;
}

export const en = {
  brand: 'Berth',
  title: (page: string, part: string | null) => `${page}${part === null ? '' : ` · ${part}`} · Berth`,
  skip: 'Skip to content',
  nav: {
    label: 'Main',
    pages: { overview: 'Overview', sandboxes: 'Sandboxes', agents: 'Agents', activity: 'Activity', usage: 'Usage' },
    inbox: 'Inbox',
    inboxOf: (count: number) => (count === 0 ? 'Inbox' : `Inbox ${count} waiting for you`),
    settings: 'Settings',
    service: 'Service',
    me: 'You',
    ofOrg: { projects: 'Projects', members: 'Members', apiKeys: 'API keys', billing: 'Billing', org: 'Org' },
    outer: { account: 'Account', signIns: 'Sign-ins', reference: 'API reference', signOut: 'Sign out' },
    palette: 'Search',
    orgOf: (name: string) => `Org: ${name}`,
    accountOf: (name: string) => `Account: ${name}`,
    theme: 'Theme',
    themes: { system: 'System', light: 'Light', dark: 'Dark' },
    zone: 'Times',
    zones: { utc: 'UTC', local: 'Local' },
  },
  time: {
    ago: ({ count, unit }: Duration) => (count === 0 ? 'now' : relative.format(-count, unit)),
    // ISO date and time, with the name of the zone.
    absolute: inZone('sv-SE', { dateStyle: 'short', timeStyle: 'long' }),
  },
  copy: { label: (what: string) => `Copy ${what}`, done: 'Copied', failed: 'The browser does not allow copying.' },
  states: {
    loading: 'Loading',
    retry: 'Try again',
    more: 'Show more',
    cancel: 'Cancel',
    actions: 'Actions',
    chooseAll: 'Choose all',
    tick: (done: boolean) => (done ? 'Done' : 'To do'),
    back: 'Go to your orgs',
    reauthenticateTitle: 'Confirm your sign-in first',
    reauthenticate:
      'This needs a recent sign-in. Confirm it in the new tab, then return and try again: your input is kept.',
    reauthenticateLink: 'Confirm the sign-in',
    requestId: 'Request',
    errorTitle: 'This did not work',
    unreachable: 'The service does not respond. It may be restarting.',
    forbiddenTitle: 'You may not see this',
    forbidden: (message: string) =>
      `The service refused: ${message}. An owner or admin of the org can change your role.`,
    goneTitle: 'Not found',
    gone: 'It does not exist, was deleted, or belongs to an org that you are not a member of.',
    wrongTitle: 'No such page',
    wrong: 'The address may be mistyped, or from another version of the console.',
    crashTitle: 'The console failed',
    crash: 'This is a bug. Reload the page; your sandboxes are not affected.',
    stale: (time: string) => `The service does not respond. This is from ${time}.`,
  },
  update: {
    newer: (version: string) => `Berth was updated to ${version}. Reload the page to use it.`,
    missingTitle: 'A part of the console is missing',
    missing: 'A part of the console did not load. The service may be restarting, or was updated: reload the page.',
    loses: 'Text that you typed on this page would be lost.',
    reload: 'Reload',
    anyway: 'Reload anyway',
  },
  session: {
    title: 'You are signed out',
    again: 'Sign in again',
    keeps: 'Your input on this page is kept. Sign in in the new tab, then return to this one.',
    refusedTitle: 'Wrong address',
    refused: (origin: string) =>
      `The service does not accept pages of ${origin}. Open the console at its own address (BERTH_PUBLIC_URL).`,
    unreachableTitle: 'No connection',
  },
  orgs: {
    title: 'Your orgs',
    role: (role: string) => `Role: ${role}`,
    none: 'You are not a member of any org yet',
    noneHint: 'Create an org, or ask a member of one for an invitation.',
    name: 'Name of the org',
    create: 'Create org',
    removedTitle: (name: string) => `You are no longer a member of ${name}`,
    removed: 'This page shows its last state. An owner or admin of the org can invite you again.',
  },
  status: statusOf,
  sandboxes: {
    title: 'Sandboxes',
    create: 'Create sandbox',
    empty: 'No sandboxes yet',
    emptyHint: 'A sandbox is a virtual machine for running code and coding agents. It starts in about a second.',
    columns: { name: 'Name', status: 'Status', project: 'Project', size: 'Size', active: 'Last used', age: 'Created' },
    size: (vcpu: number, memoryGb: number) => `${vcpu} vCPU, ${memoryGb} GB`,
    count: (count: number, more: boolean) => sandboxes(count, more ? '+' : ''),
    commandHint: 'Or on the command line:',
    command: 'berth sandbox create',
    noMatch: 'No matching sandboxes',
    clear: 'Clear the filters',
    expires: 'expires',
    choose: (name: string) => `Choose ${name}`,
    chosen: {
      label: 'Chosen sandboxes',
      count: (count: number) => `${count} chosen`,
      progress: (done: number, of: number) => `${done} of ${of} done`,
      action: (action: string, able: number, of: number) =>
        able === of || able === 0 ? action : `${action} ${able} of ${of}`,
      clear: 'Clear the choice',
      failed: (count: number) => `The action failed for ${sandboxes(count)}`,
      deleteWords: (count: number) => ({
        title: `Delete ${sandboxes(count)}?`,
        hint: ERASES,
        submit: 'Delete them',
        failed: failed('destroy'),
      }),
    },
    filters: {
      label: 'Filter sandboxes',
      search: 'Name or id',
      project: 'Project',
      allProjects: 'All projects',
      statuses: 'Statuses',
      sort: 'Order',
      sorts: {
        '-createdAt': 'Newest first',
        createdAt: 'Oldest first',
        '-lastActiveAt': 'Last used first',
        lastActiveAt: 'Longest unused first',
      },
    },
  },
  actions: { forbidden, name: (action: SandboxAction) => ACTIONS[action], why, failed },
  sandbox: {
    crumbs: 'Breadcrumb',
    tabs: {
      label: 'Sandbox',
      overview: 'Overview',
      terminal: 'Terminal',
      files: 'Files',
      agents: 'Agents',
      activity: 'Activity',
      metrics: 'Metrics',
      previews: 'Previews',
    },
    since: 'since',
    failed: 'This sandbox failed',
    lastFault: 'The last transition failed',
    facts: 'Details',
    labels: 'Labels',
    noLabels: 'none',
    none: '–',
    id: 'Id',
    project: 'Project',
    agent: 'Agent',
    size: 'Size',
    sizeOf: (vcpu: number, memoryGb: number, diskGb: number) =>
      `${vcpu} vCPU, ${memoryGb} GB memory, ${diskGb} GB disk`,
    pending: (size: string, now: boolean) => (now ? `Changing to ${size}` : `${size} with the next wake`),
    profile: 'Profile',
    persistence: 'When idle',
    policies: { sleep_resume: 'sleeps, keeps memory and disk', always_on: 'stays awake' } as Readonly<
      Record<string, string>
    >,
    sleeps: 'sleeps unless used:',
    uses: {
      connect: 'Last kept awake by an open terminal or connection.',
      agent: 'Last kept awake by an agent session.',
      create: 'Last used by a create with its key.',
      cpu: 'Last kept awake by its CPU use.',
    } as Readonly<Record<string, string>>,
    delays: {
      emulation: 'Its host has no hardware virtualization: emulation is many times slower.',
      no_warm_vm: 'No warm machine was ready: one is started for it.',
    } as Readonly<Record<string, string>>,
    expires: 'Expires',
    repository: 'Repository',
    clones: { pending: 'not cloned yet', cloning: 'cloning', cloned: 'cloned', failed: 'clone failed' } as Readonly<
      Record<string, string>
    >,
    endUser: 'End user',
    created: 'Created',
    used: 'Last used',
    lastWake: 'Last wake',
    wakeFrom: { snapshot: 'with its processes', disk: 'from its disk' } as Readonly<Record<string, string>>,
    wakesFrom: 'Next wake',
    resizeWords: {
      title: 'Resize',
      hint:
        'An awake sandbox changes at once where its guest allows it, otherwise with its next wake. ' +
        'Disks only grow.',
      submit: 'Resize',
      failed: failed('resize'),
    },
    sizes: { vcpu: 'vCPUs', memory: 'Memory in GB', disk: 'Disk in GB' },
    deleteWords: (name: string) => ({
      title: `Delete ${name}?`,
      hint: ERASES,
      submit: 'Delete sandbox',
      failed: failed('destroy'),
      done: `${name} is being deleted`,
    }),
  },
  create: {
    title: 'Create sandbox',
    name: { label: 'Name', hint: 'Empty: the service chooses one.' },
    project: 'Project',
    noProject: 'This org has no project',
    agent: 'Coding agent',
    size: 'Size',
    sizes: { small: 'Small', medium: 'Medium', large: 'Large', xlarge: 'Extra large' },
    disk: (gb: number) => `${gb} GB disk`,
    repository: 'Repository',
    repositoryHint: 'owner/repository or an https URL; cloned into /code. Empty: the project’s default.',
    branch: 'Branch',
    more: 'More options',
    endUser: { label: 'End user', hint: 'Your own id of the person that the sandbox serves; usage is grouped by it.' },
    labels: { label: 'Labels', hint: 'One per line: key=value' },
    persistence: 'When idle',
    policies: { '': 'As the project says', sleep_resume: 'Sleep, keep memory and disk', always_on: 'Stay awake' },
    sshKey: { label: 'SSH public key', hint: 'One OpenSSH line; its owner can sign in as berth.' },
    submit: 'Create sandbox',
    submitting: 'Creating…',
    failed: 'The sandbox was not created',
    labelFault: (fault: LabelFault) =>
      fault.kind === 'too-many'
        ? 'At most 24 labels.'
        : `Line ${fault.line}: ${
            {
              'no-key': 'the key is missing',
              'long-key': 'the key is too long',
              'long-value': 'the value is too long',
            }[fault.kind]
          }.`,
  },
} as const;
