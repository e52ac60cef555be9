// Texts of preview links.
const HOUR = 3_600;
const DAY = 24 * HOUR;

const INACTIVE: Readonly<Record<string, string>> = {
  api_key_revoked: 'Does not open: its API key was revoked.',
  creator_removed: 'Does not open: its creator left the org.',
  creator_not_permitted: 'Does not open: its creator may no longer share.',
};

export const previewsText = {
  label: 'Public links',
  hint:
    'A link opens a port of the sandbox in a browser. Team links are not listed: they open for members ' +
    'who sign in.',
  empty: 'No public links',
  emptyHint: 'A public link opens a port for anyone who has it, until it expires or is revoked.',
  command: 'berth preview create',
  columns: { port: 'Port', link: 'Link', used: 'Last used', expires: 'Expires' },
  portOf: (port: number) => `Port ${port}`,
  unused: 'never',
  none: '–',
  embeddable: 'may be embedded',
  inactive: (reason: string) => INACTIVE[reason] ?? `Does not open: ${reason}.`,
  open: 'Open',
  openOf: (port: number) => `Open port ${port} in a new tab`,
  copy: (port: number) => `link to port ${port}`,
  revoke: 'Revoke',
  revokeOf: (port: number, label: string | null) =>
    `Revoke the link to port ${port}${label === null ? '' : `, ${label}`}`,
  revokeWords: (port: number) => ({
    title: `Revoke the link to port ${port}?`,
    hint: 'It stops opening within seconds, for everyone. This cannot be undone.',
    submit: 'Revoke link',
    failed: 'The link was not revoked',
    done: `The link to port ${port} is revoked`,
  }),
  createWords: {
    title: 'Create a link',
    hint: 'The sandbox may be asleep.',
    submit: 'Create link',
    failed: 'The link was not created',
  },
  portHint: 'TCP port on which the app listens.',
  audience: 'Opens for',
  audiences: {
    team: { label: 'Team', detail: ['members of the org, after sign-in'] },
    public: { label: 'Public', detail: ['anyone who has the link'] },
  },
  lifetime: 'Lifetime',
  lifetimes: {
    [HOUR]: '1 hour',
    [8 * HOUR]: '8 hours',
    [DAY]: '1 day',
    [7 * DAY]: '7 days',
    [30 * DAY]: '30 days',
  } as Readonly<Record<string, string>>,
  name: { label: 'Label', hint: 'For your own orientation.' },
  endUser: { label: 'End user', hint: 'Your own id of the person whom the link serves.' },
  embed: 'Pages of other origins may show the app in a frame',
  more: 'More options',
  created: { team: 'The team link is created', public: 'The public link is created' } as Readonly<
    Record<string, string>
  >,
  createdTeam: 'It is not stored: copy it now, or create another one later.',
  done: 'Done',
} as const;
