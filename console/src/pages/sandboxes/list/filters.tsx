// Search, statuses with their counts, project and order of the sandbox list.
import { useQuery } from '@tanstack/react-query';
import { Search } from 'lucide-react';
import { useEffect, useState } from 'react';
import { NAME_CHARACTERS } from '@berth/sdk/limits';
import { projectsQuery } from '../../../queries/orgs.ts';
import { sandboxCountsQuery } from '../../../queries/sandboxes.ts';
import { filterOf, LISTED_STATUSES, toggleStatus, type SandboxListing } from '../../../rules/sandbox-filter.ts';
import { en } from '../../../text/en.ts';
import { optionsOf, Select } from '../../../ui/forms/index.ts';
import { Status } from '../../../ui/kit/index.ts';
import { useOrgInView } from '../../frame/content.tsx';
import css from './filters.module.css';

const TYPING_MS = 250;
const { filters: words } = en.sandboxes;

interface FiltersProps {
  listing: SandboxListing;
  onChange: (listing: SandboxListing) => void;
}

export function Filters({ listing, onChange }: FiltersProps) {
  const { orgId } = useOrgInView();
  const { data: projects = [] } = useQuery(projectsQuery(orgId));
  const { projectId = '', sort = '-createdAt' } = listing;
  const options = optionsOf(projects, words.allProjects);
  const without = (name: keyof SandboxListing): SandboxListing => {
    const { [name]: _gone, ...rest } = listing;
    return rest;
  };
  return (
    <search className={css.filters} aria-label={words.label}>
      <SearchBox value={listing.q ?? ''} onChange={(q) => onChange(q === '' ? without('q') : { ...listing, q })} />
      <Select
        aria-label={words.project}
        value={projectId}
        options={{ ...options, [projectId]: options[projectId] ?? projectId }}
        onChange={(id) => onChange(id === '' ? without('projectId') : { ...listing, projectId: id })}
      />
      <Select
        aria-label={words.sort}
        value={sort}
        options={words.sorts}
        onChange={(chosen) => onChange({ ...listing, sort: chosen })}
      />
      <Statuses listing={listing} onChange={onChange} />
    </search>
  );
}

/** Applies its text when typing pauses. */
function SearchBox({ value, onChange }: { value: string; onChange: (text: string) => void }) {
  const [typed, setTyped] = useState<string | null>(null);
  useEffect(() => {
    if (typed === null) return;
    const q = typed.trim();
    // The address follows later: what is typed meanwhile must not start from its old text.
    const timer = setTimeout(() => (q === value ? setTyped(null) : onChange(q)), TYPING_MS);
    return () => clearTimeout(timer);
  });
  return (
    <span className={css.search}>
      <Search aria-hidden />
      <input
        type="search"
        aria-label={words.search}
        placeholder={words.search}
        maxLength={NAME_CHARACTERS}
        value={typed ?? value}
        onChange={({ target }) => setTyped(target.value)}
      />
    </span>
  );
}

function Statuses({ listing, onChange }: FiltersProps) {
  const { orgId } = useOrgInView();
  const { data: counts } = useQuery(sandboxCountsQuery(orgId, filterOf(listing)));
  const chosen = listing.status ?? [];
  const shown = LISTED_STATUSES.filter((one) => chosen.includes(one) || (counts?.byStatus[one] ?? 0) > 0);
  return (
    <fieldset className={css.statuses} aria-label={words.statuses}>
      {shown.map((one) => (
        <button
          key={one}
          type="button"
          className={css.chip}
          aria-pressed={chosen.includes(one)}
          onClick={() => onChange(toggleStatus(listing, one))}
        >
          <Status status={one} />
          <span className={css.number}>{counts?.byStatus[one] ?? 0}</span>
        </button>
      ))}
    </fieldset>
  );
}
