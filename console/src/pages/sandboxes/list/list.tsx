// Sandboxes of an org, with the actions on chosen ones.
import { useInfiniteQuery } from '@tanstack/react-query';
import { Plus } from 'lucide-react';
import { useState } from 'react';
import { Link, useSearchParams } from 'react-router';
import type { api } from '@berth/sdk';
import { useSandboxActions } from '../../../queries/sandbox-actions.ts';
import { sandboxesQuery } from '../../../queries/sandboxes.ts';
import { PATHS } from '../../../rules/paths.ts';
import type { SandboxAction } from '../../../rules/sandbox-actions.ts';
import { isFiltered, readListing, writeListing } from '../../../rules/sandbox-filter.ts';
import { visibleText } from '../../../rules/visible-text.ts';
import { en } from '../../../text/en.ts';
import { DialogForm } from '../../../ui/forms/index.ts';
import {
  Alert,
  Below,
  Button,
  Notice,
  Page,
  Records,
  Status,
  Time,
  Untrusted,
  type Columns,
} from '../../../ui/kit/index.ts';
import { Loaded, useOrgInView } from '../../frame/content.tsx';
import { LinkButton } from '../../frame/link-button.tsx';
import { ProjectName } from '../../projects/project-name.tsx';
import { whyNot } from '../in-view.tsx';
import { Filters } from './filters.tsx';
import css from './list.module.css';

const text = en.sandboxes;

export function SandboxesPage() {
  const { orgId, refusalOf } = useOrgInView();
  const [search, setSearch] = useSearchParams();
  const listing = readListing(search);
  const query = useInfiniteQuery(sandboxesQuery(orgId, listing));
  const { data: sandboxes = [], hasNextPage } = query;
  const isEmpty = query.data?.length === 0 && !isFiltered(listing);
  const noMatch = (
    <Notice title={text.noMatch}>
      <Button onClick={() => setSearch({}, { replace: true })}>{text.clear}</Button>
    </Notice>
  );
  return (
    <Page
      title={text.title}
      beside={
        sandboxes.length === 0 ? null : <span className={css.count}>{text.count(sandboxes.length, hasNextPage)}</span>
      }
      actions={
        <LinkButton icon={Plus} reason={refusalOf('sandbox.create')} to={PATHS.newSandbox(orgId)}>
          {text.create}
        </LinkButton>
      }
    >
      {isEmpty ? null : (
        <Filters listing={listing} onChange={(next) => setSearch(writeListing(next), { replace: true })} />
      )}
      <Loaded query={query} empty={isEmpty ? EMPTY : noMatch} inView>
        {(shown) => <List sandboxes={shown} />}
      </Loaded>
    </Page>
  );
}

const EMPTY = (
  <Notice title={text.empty} hint={text.emptyHint}>
    <p>
      {text.commandHint} <code>{text.command}</code>
    </p>
  </Notice>
);

const COLUMNS: Columns<api.Sandbox> = [
  { name: text.columns.name, cell: (sandbox) => <Name sandbox={sandbox} /> },
  { name: text.columns.status, cell: ({ status }) => <Status status={status} /> },
  { name: text.columns.project, cell: (sandbox) => <Project sandbox={sandbox} /> },
  { name: text.columns.size, quiet: true, cell: (sandbox) => <Size sandbox={sandbox} /> },
  { name: text.columns.active, quiet: true, cell: (sandbox) => <LastUsed sandbox={sandbox} /> },
  { name: text.columns.age, quiet: true, wideOnly: true, cell: ({ createdAt }) => <Time at={createdAt} /> },
];

function List({ sandboxes }: { sandboxes: readonly api.Sandbox[] }) {
  const [ids, setIds] = useState<ReadonlySet<string>>(new Set());
  const chosen = sandboxes.filter(({ id }) => ids.has(id));
  return (
    <>
      <Chosen sandboxes={chosen} onClear={() => setIds(new Set())} />
      <Records
        compact
        label={text.title}
        records={sandboxes}
        keyOf={({ id }) => id}
        columns={COLUMNS}
        selection={{
          has: ({ id }) => ids.has(id),
          toggle: ({ id }) => setIds(new Set(ids.has(id) ? [...ids].filter((one) => one !== id) : [...ids, id])),
          toggleAll: () => setIds(new Set(chosen.length === sandboxes.length ? [] : sandboxes.map(({ id }) => id))),
          labelOf: ({ name }) => text.choose(visibleText(name)),
        }}
      />
    </>
  );
}

interface CellProps {
  sandbox: api.Sandbox;
}

function Name({ sandbox: { id, name } }: CellProps) {
  return (
    <span>
      <Link className={css.name} to={PATHS.sandbox(id)}>
        <Untrusted text={name} />
      </Link>
      <Below>
        <code className={css.id}>{id}</code>
      </Below>
    </span>
  );
}

function Project({ sandbox: { projectId, endUserId } }: CellProps) {
  return (
    <>
      <ProjectName id={projectId} />
      <Below text={endUserId} />
    </>
  );
}

function Size({ sandbox }: CellProps) {
  const { allocated_vcpu: vcpu, allocated_memory_gb: memory, pendingAllocation: pending } = sandbox;
  return (
    <>
      {text.size(vcpu, memory)}
      {pending === undefined ? null : (
        <Below>{en.sandbox.pending(text.size(pending.vcpu, pending.memoryGb), sandbox.resizing)}</Below>
      )}
    </>
  );
}

function LastUsed({ sandbox: { lastActiveAt, expiresAt } }: CellProps) {
  return (
    <>
      <Time at={lastActiveAt} />
      {expiresAt === null ? null : (
        <Below>
          {text.expires} <Time at={expiresAt} ahead />
        </Below>
      )}
    </>
  );
}

const chosenText = en.sandboxes.chosen;
const ACTIONS = ['sleep', 'wake', 'destroy'] as const satisfies readonly SandboxAction[];

/** Actions on the chosen sandboxes. Failures are listed by name. */
function Chosen({ sandboxes, onClear }: { sandboxes: readonly api.Sandbox[]; onClear: () => void }) {
  const { org } = useOrgInView();
  const { run, done } = useSandboxActions();
  const { data: failures = [], isPending, variables } = run;
  const [first] = sandboxes;
  if (first === undefined && failures.length === 0 && !isPending) return null;
  const count = first === undefined ? null : chosenText.count(sandboxes.length);
  return (
    <section className={css.chosen} aria-label={chosenText.label}>
      <output>{isPending ? chosenText.progress(done, variables.sandboxes.length) : count}</output>
      {first === undefined
        ? null
        : ACTIONS.map((action) => {
            const able = sandboxes.filter((sandbox) => whyNot(action, sandbox, org) === null);
            const start = (): void => run.mutate({ action, sandboxes: able });
            const words = chosenText.deleteWords(able.length);
            // The dialog closes at once: the section shows the progress.
            const dialog = <DialogForm danger words={words} send={async () => start()} />;
            return (
              <Button
                key={action}
                kind={action === 'destroy' ? 'danger' : 'plain'}
                busy={isPending}
                reason={able.length === 0 ? whyNot(action, first, org) : null}
                dialog={action === 'destroy' ? dialog : undefined}
                onClick={start}
              >
                {chosenText.action(en.actions.name(action), able.length, sandboxes.length)}
              </Button>
            );
          })}
      <Button
        kind="quiet"
        busy={isPending}
        onClick={() => {
          run.reset();
          onClear();
        }}
      >
        {chosenText.clear}
      </Button>
      {failures.length === 0 ? null : (
        <Alert title={chosenText.failed(failures.length)}>
          <ul>
            {failures.map(({ sandbox, error }) => (
              <li key={sandbox.id}>
                <Untrusted text={sandbox.name} />: {error.message}
              </li>
            ))}
          </ul>
        </Alert>
      )}
    </section>
  );
}
