// Home: the last or only org, else a choice, else the first org.
import { useQuery } from '@tanstack/react-query';
import { Link, Navigate, useNavigate } from 'react-router';
import type { api } from '@berth/sdk';
import { NAME_CHARACTERS } from '@berth/sdk/limits';
import { createdQuery } from '../../queries/activity.ts';
import { mayIn } from '../../rules/access.ts';
import { skippedName } from '../../rules/first-run.ts';
import { PATHS } from '../../rules/paths.ts';
import { createOrg, orgsQuery } from '../../queries/orgs.ts';
import { sandboxCountsQuery } from '../../queries/sandboxes.ts';
import { readStored } from '../../session/stored.ts';
import { en } from '../../text/en.ts';
import { InlineForm, TextField, useForm } from '../../ui/forms/index.ts';
import { Loading, Page, Untrusted } from '../../ui/kit/index.ts';
import { lastOrgId } from '../frame/current-org.ts';
import { Loaded } from '../frame/content.tsx';
import css from './home.module.css';

export function HomePage() {
  return (
    <Loaded query={useQuery(orgsQuery)}>
      {(orgs) => {
        const last = lastOrgId();
        const only = orgs.find(({ id }) => id === last) ?? (orgs.length === 1 ? orgs[0] : undefined);
        if (only !== undefined) return <Landing org={only} />;
        return orgs.length === 0 ? <FirstOrg /> : <Choice orgs={orgs} />;
      }}
    </Loaded>
  );
}

/** A new org starts with its first run, which can be skipped. */
function Landing({ org }: { org: api.Org }) {
  const mayStart = mayIn(org, 'sandbox.create') && readStored(skippedName(org.id)) === null;
  const created = useQuery({ ...createdQuery(org.id), enabled: mayStart });
  // A sandbox may be older than the feed.
  const counts = useQuery({ ...sandboxCountsQuery(org.id, {}), enabled: mayStart && created.data === null });
  if (created.isLoading || counts.isLoading) return <Loading />;
  const isNew = created.data === null && counts.data?.total === 0;
  return <Navigate replace to={mayStart && isNew ? PATHS.start(org.id) : PATHS.org(org.id)} />;
}

function Choice({ orgs }: { orgs: readonly api.Org[] }) {
  return (
    <Page title={en.orgs.title}>
      <ul className={css.orgs}>
        {orgs.map(({ id, name, role }) => (
          <li key={id}>
            <Link to={PATHS.org(id)}>
              <Untrusted text={name} />
              <span>{en.orgs.role(role)}</span>
            </Link>
          </li>
        ))}
      </ul>
    </Page>
  );
}

function FirstOrg() {
  const navigate = useNavigate();
  const form = useForm({ name: '' });
  const create = (): Promise<api.Org> => createOrg(form.values.name);
  return (
    <Page title={en.orgs.none}>
      <InlineForm
        className={css.form}
        failed={en.states.errorTitle}
        error={form.error}
        submit={en.orgs.create}
        primary
        busy={form.isPending}
        onSubmit={() => form.run(create, ({ id }) => void navigate(PATHS.start(id)))}
      >
        <p>{en.orgs.noneHint}</p>
        <TextField label={en.orgs.name} required maxLength={NAME_CHARACTERS} {...form.field('name')} />
      </InlineForm>
    </Page>
  );
}
