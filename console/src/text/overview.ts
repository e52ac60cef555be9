// Texts of an org's overview and its checklist.
const ITEMS = {
  sandbox: 'Create the first sandbox',
  key: 'Make an API key',
  invite: 'Invite somebody',
  cap: 'Set a cap on machine hours',
} as const;

export type ChecklistItem = keyof typeof ITEMS;

export const overviewText = {
  title: 'Overview',
  awake: (awake: number, most: number | null) =>
    most === null ? `${awake} awake or starting` : `${awake} awake or starting, limit of the plan ${most}`,
  parts: { hours: 'Machine hours', waiting: 'Waiting for you', failures: 'Failed sandboxes' },
  noFailures: 'No sandbox has failed',
  failure: { reason: 'Reason', noReason: 'unknown', since: 'Since' },
  checklist: 'To set up',
  item: (item: ChecklistItem) => ITEMS[item],
  dismiss: 'Hide this list',
} as const;
