# Watches of the helper for file calls (program.pl, which runs after this part):
#   watch PATH RECURSIVE MOST_FOLDERS MOST_SECONDS   `ok`, a line feed, and then changes until the caller
#       closes the socket. Each is a letter for the change, one for the kind, the path below PATH with
#       a slash before each name (empty: PATH itself) and NUL.
#       Changes: `c` created, moved here, or put in the place of another. `w`: content, mode, owner or
#       time of something that stays. `r`: removed, or moved away. Kinds: as of listings, or `-` of
#       anything but a folder that is no longer there.
# Closes the socket when changes may be missing: PATH leads to another folder or to none, the kernel
# dropped events, or there are more folders than MOST_FOLDERS. Refusals: also `folders`, and `watches`
# when the user has no more inotify instances or watches.
#
# inotify watches folders, each by its inode; %folder_of has their paths. A folder that appears gets
# a watch and is then searched, because its content may have come before the watch: what is found is
# told as created. An event that is older than a move is told with the path of now, and the event of
# the move follows.
use strict;
our ($o_directory, $o_nofollow, $o_gently, $inotify_init, $inotify_add, $inotify_remove, $piece, $peer, $seconds);
my ($in_modify, $in_attrib, $in_close_write, $in_moved_from, $in_moved_to, $in_create, $in_delete) =
  (0x2, 0x4, 0x8, 0x40, 0x80, 0x100, 0x200);
my ($in_q_overflow, $in_ignored, $in_isdir, $in_onlydir, $in_excl_unlink) =
  (0x4000, 0x8000, 0x40000000, 0x01000000, 0x04000000);
# Without events of a file that was unlinked, or has no name yet.
my $wanted = $in_modify | $in_attrib | $in_close_write | $in_moved_from | $in_moved_to | $in_create | $in_delete |
  $in_onlydir | $in_excl_unlink;
my $longest_path = 4095;
my ($top, $identity, $recursive, $most_folders, $inotify);
# By number of the watch, and the reverse.
my (%folder_of, %watch_of);
# Changes to send, and the kinds by path of those that exist.
my ($changes, %told) = ('');
# The folder that this process is in; undefined: none of the watched.
my $entered;

# Ends the watch, or refuses it before it has begun.
sub give_up {
  my ($why) = @_;
  refuse($why) unless defined $changes;
  exit 0;
}

sub flush_changes {
  say_all($changes) if $changes ne '';
  ($changes, %told) = ('');
}

sub tell_change {
  my ($change, $kind, $path) = @_;
  # No call takes such a path.
  while (length($top) + length($path) > $longest_path) {
    $path =~ s{/[^/]*\z}{}s;
    ($change, $kind) = ('w', 'd');
  }
  if ($change eq 'r') {
    # With all below it.
    if ($kind eq 'd') { %told = (); } else { delete $told{$path}; }
  } else {
    return if exists $told{$path} && ($change eq 'w' || $told{$path} eq $kind);
    $told{$path} = $kind;
  }
  $changes .= "$change$kind$path\0";
  flush_changes() if length $changes >= $piece;
}

# Enters a folder, without following links below the top. Returns false if that is impossible.
sub go_into {
  my ($path) = @_;
  return 1 if defined $entered && $entered eq $path;
  $entered = undef;
  sysopen(my $folder, $top eq '' ? '/' : $top, $o_directory | $o_gently) or return 0;
  my @stat = stat $folder;
  $identity = "$stat[0] $stat[1]" unless defined $identity;
  # Another folder has its path.
  give_up(2) if $identity ne "$stat[0] $stat[1]";
  chdir $folder or return 0;
  for my $name (split m{/}, substr($path, $path eq '' ? 0 : 1)) {
    sysopen(my $next, $name, $o_directory | $o_nofollow | $o_gently) or return 0;
    chdir $next or return 0;
  }
  $entered = $path;
  return 1;
}

sub leave {
  $entered = undef;
  chdir '/';
}

sub forget {
  my ($watch) = @_;
  my $path = delete $folder_of{$watch};
  delete $watch_of{$path} if defined $path && defined $watch_of{$path} && $watch_of{$path} == $watch;
}

# Watches the current folder. Returns false if it cannot be read.
sub attend {
  my ($path) = @_;
  my $here = '.';
  my $watch = syscall($inotify_add, $inotify, $here, $wanted);
  if ($watch < 0) {
    my $no_space = 28;
    give_up('watches') if $! == $no_space;
    return 0;
  }
  # A mount shows the top again below itself.
  return 0 if $path ne '' && defined $folder_of{$watch} && $folder_of{$watch} eq '';
  my $former = $watch_of{$path};
  if (defined $former && $former != $watch) {
    forget($former);
    syscall($inotify_remove, $inotify, $former + 0);
  }
  forget($watch);
  ($folder_of{$watch}, $watch_of{$path}) = ($path, $watch);
  give_up('folders') if keys(%folder_of) > $most_folders;
  return 1;
}

# Tells the names in the folders and below, which are new, and watches those folders. $until: without
# telling, before the watch has begun.
sub search {
  my ($until, @level) = @_;
  while (@level) {
    my @below;
    for my $path (@level) {
      next unless go_into($path) && attend($path);
      opendir(my $names, '.') or next;
      for my $name (readdir $names) {
        next if $name eq '.' || $name eq '..' || is_own($name);
        give_up(110) if defined $until && time > $until;
        my @stat = lstat $name or next;
        my $kind = kind($stat[2]);
        my $there = "$path/$name";
        tell_change('c', $kind, $there) unless defined $until;
        push @below, $there if $kind eq 'd' && length($top) + length($there) < $longest_path;
      }
    }
    @level = @below;
  }
}

# Temporary files of writes (changes.pl).
sub is_own { return $_[0] =~ /^\.berth-write-\d+-\d+\z/; }

sub moved_away {
  my ($path) = @_;
  my $below = "$path/";
  for my $folder (keys %watch_of) {
    next unless $folder eq $path || substr($folder, 0, length $below) eq $below;
    my $watch = $watch_of{$folder} + 0;
    forget($watch);
    syscall($inotify_remove, $inotify, $watch);
  }
}

sub take_event {
  my ($watch, $mask, $name) = @_;
  exit 0 if $mask & $in_q_overflow;
  my $folder = $folder_of{$watch};
  # Of a folder that has left.
  return unless defined $folder;
  if ($mask & $in_ignored) {
    forget($watch);
    exit 0 if $folder eq '';
    return;
  }
  # The watch of the parent folder has the same event.
  return $folder eq '' ? tell_change('w', 'd', '') : undef if $name eq '';
  return if is_own($name);
  my ($path, $is_folder) = ("$folder/$name", $mask & $in_isdir);
  $entered = undef if $is_folder && defined $entered && $mask & ($in_delete | $in_moved_from);
  if ($mask & ($in_delete | $in_moved_from)) {
    if ($is_folder && $mask & $in_moved_from) { moved_away($path); }
    elsif ($is_folder && defined $watch_of{$path}) { forget($watch_of{$path}); }
    return tell_change('r', $is_folder ? 'd' : '-', $path);
  }
  my $is_new = $mask & ($in_create | $in_moved_to);
  if ($is_folder) {
    tell_change($is_new ? 'c' : 'w', 'd', $path);
    # A change of its mode may have opened it.
    search(undef, $path) if $recursive && ($is_new || !defined $watch_of{$path});
    return;
  }
  my $is_reached = go_into($folder);
  my @stat = $is_reached ? lstat $name : ();
  # A file without a name yet, or an event of its removal follows.
  return if $is_reached && !@stat && !$is_new;
  tell_change($is_new ? 'c' : 'w', @stat ? kind($stat[2]) : '-', $path);
}

sub watch {
  (my $path, $recursive, $most_folders, my $most_seconds) = @_;
  ($top, $changes) = ($path eq '/' ? '' : $path, undef);
  my ($close_on_exec, $non_blocking) = (02000000, 04000);
  $inotify = syscall($inotify_init, $close_on_exec | $non_blocking);
  refuse('watches') if $inotify < 0;
  open(my $events, '<&=', $inotify) or refuse($! + 0);
  go_into('') && attend('') or refuse($! + 0);
  search(time + $most_seconds, '') if $recursive;
  leave();
  $changes = '';
  say_all("ok\n");
  my $watched = '';
  vec($watched, fileno $events, 1) = 1;
  vec($watched, fileno $peer, 1) = 1;
  for (;;) {
    my $ready = $watched;
    alarm 0;
    # No event tells that a parent of the top was moved.
    my $count = select($ready, undef, undef, 1);
    alarm $seconds;
    next if $count < 0;
    exit 0 if vec($ready, fileno $peer, 1) || !go_into('');
    if (vec($ready, fileno $events, 1)) {
      my $got = sysread($events, my $buffer, 65536);
      exit 0 unless $got;
      for (my $at = 0; $at + 16 <= $got;) {
        my ($watch, $mask, undef, $length) = unpack 'l L L L', substr($buffer, $at, 16);
        take_event($watch, $mask, unpack 'Z*', substr($buffer, $at + 16, $length));
        $at += 16 + $length;
      }
      flush_changes();
    }
    leave();
  }
}
