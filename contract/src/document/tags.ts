// The groups that the operations of a document stand in, as they follow from the paths: a new route
// finds its group, or makes one.

export interface Tag {
  name: string;
  description: string;
}

interface KnownTag extends Tag {
  /** Fits the path without `/v1` and the org before it. */
  paths: RegExp;
}

const KNOWN: readonly KnownTag[] = [
  { name: 'Health', description: 'Whether the service answers.', paths: /^\/health$/ },
  { name: 'Identity', description: 'Who calls, and in which orgs.', paths: /^\/me(\/orgs.*)?$/ },
  { name: 'Agent tokens', description: 'Personal tokens that drive agent sessions.', paths: /^\/me\/agent-tokens/ },
  { name: 'Orgs', description: 'Organizations and their members.', paths: /^\/(orgs|members(\/.*)?)$/ },
  { name: 'Invitations', description: 'Invitations into an org.', paths: /^\/invitations/ },
  {
    name: 'API keys',
    description: 'Credentials for scripts, CI and platforms. Managed in a session alone.',
    paths: /^\/api-keys/,
  },
  { name: 'Activity', description: 'What happened in an org.', paths: /^\/activity/ },
  {
    name: 'Projects',
    description: 'What sandboxes belong to, and the defaults they fall back to.',
    paths: /^\/projects(?!.*usage)/,
  },
  { name: 'Usage', description: 'Machine hours, and the caps on them.', paths: /\/usage/ },
  { name: 'Billing', description: 'Plans and payment.', paths: /^\/(subscription|billing)/ },
  { name: 'Previews', description: 'Links to a port of a sandbox.', paths: /^\/sandboxes\/\{\w+\}\/previews/ },
  {
    name: 'Files',
    description: 'Files of a sandbox that is awake. Relative paths are below /code.',
    paths: /^\/sandboxes\/\{\w+\}\/files?(\/|$)/,
  },
  {
    name: 'Metrics',
    description: 'What a sandbox uses, and the size that is recommended for it.',
    paths: /^\/sandboxes\/\{\w+\}\/metrics/,
  },
  { name: 'Agent sessions', description: 'Conversations with a coding agent in a sandbox.', paths: /agent-sessions/ },
  {
    name: 'Sandboxes',
    description: 'Machines that run code: made, used, put to sleep, woken, resized, destroyed.',
    paths: /^\/sandboxes/,
  },
];

/** The group of a route by its path; one of its own, named by the path, when no known one fits. */
export function tagOf(path: string): Tag {
  const bare = path.replace(/^\/v1/, '').replace(/^\/orgs\/\{\w+\}(?=\/)/, '');
  const known = KNOWN.find(({ paths }) => paths.test(bare));
  if (known !== undefined) return { name: known.name, description: known.description };
  const [, first = 'other'] = bare.split('/');
  const words = first.replaceAll('-', ' ');
  return { name: words.charAt(0).toUpperCase() + words.slice(1), description: `Routes below \`/${first}\`.` };
}

/** What comes first in a document. */
const ORDER = [
  'Health',
  'Identity',
  'Sandboxes',
  'Files',
  'Previews',
  'Metrics',
  'Agent sessions',
  'Projects',
  'Usage',
];

/** The groups in their order: the known ones first. */
export function inOrder(tags: readonly Tag[]): Tag[] {
  const names = [...new Set([...ORDER, ...KNOWN.map(({ name }) => name)])];
  // What is not found comes last.
  const place = ({ name }: Tag): number => names.indexOf(name) >>> 0;
  const once = [...new Map(tags.map((tag) => [tag.name, tag])).values()];
  return once.toSorted((one, other) => place(one) - place(other) || (one.name < other.name ? -1 : 1));
}
