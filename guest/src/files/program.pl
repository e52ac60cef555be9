# Helper process for file calls. It forks for each call, and the child becomes the tenant before it
# touches a path: the kernel decides about access, a call that hangs (a dead network file system)
# hangs alone, and its exit frees everything it held. Perl: perl-base is in every Debian, and a fork
# of it costs 10 ms under emulation, a start 70 ms.
#
# Prints `ready`, then serves its socket until stdin closes. A call is eight hex digits, that many
# bytes of fields joined by NUL, and the content of a write:
#   read PATH MOST_BYTES                                   `ok LENGTH`, a line feed, the content
#   write PATH LENGTH, then the content                    `ok LENGTH`; changes nothing before the
#                                                          whole content has arrived
#   list PATH DEPTH MOST_ENTRIES MOST_BYTES MOST_SECONDS   `ok`, a line feed, a listing
#                                                          (protocol/src/listing.ts)
# A refusal is the line `no` with the kernel's error number, or `directory`, `special`, `large`.
use strict;
my $listen_at = shift @ARGV;
my ($uid, $gid, $seconds, $o_path, $o_directory, $o_nofollow, $o_gently, $o_tmpfile,
  $fsync, $fallocate, $linkat, $setgroups, $setresgid, $setresuid) = map { $_ + 0 } @ARGV;
my ($o_rdonly, $o_wronly, $o_creat_excl) = (0, 1, 0300);
my ($EPERM, $ENOENT, $EACCES, $EBUSY, $EEXIST, $EXDEV, $EISDIR, $EINVAL, $ETXTBSY, $EFBIG, $ENOSPC, $ELOOP, $EOPNOTSUPP, $EDQUOT) =
  (1, 2, 13, 16, 17, 18, 21, 22, 26, 27, 28, 40, 95, 122);
my $piece = 262144;
my $peer;
umask 022;

sub say_all {
  for (my $at = 0; $at < length $_[0];) {
    my $sent = syswrite($peer, $_[0], length($_[0]) - $at, $at);
    exit 1 unless $sent;
    $at += $sent;
  }
}

sub refuse {
  my ($why) = @_;
  say_all("no $why\n");
  exit 0;
}

sub take {
  my ($count) = @_;
  my $bytes = '';
  while (length $bytes < $count) {
    my $got = sysread($peer, $bytes, $count - length $bytes, length $bytes);
    exit 1 unless $got;
  }
  return $bytes;
}

# Drops root for good, with all supplementary groups.
sub become_tenant {
  return if $> == $uid && $< == $uid;
  syscall($setgroups, 0, 0) == 0 && syscall($setresgid, $gid, $gid, $gid) == 0 && syscall($setresuid, $uid, $uid, $uid) == 0 or exit 1;
  exit 1 if $> != $uid || $< != $uid;
}

# Opens a regular file and returns it with its stat, and never opens anything else: an O_PATH
# descriptor is checked first and then reopened. Returns undef for the file when the open failed
# with $bearable.
sub open_regular {
  my ($path, $flags, $links, $bearable) = @_;
  sysopen(my $seen, $path, $o_path | $links) or refuse($! + 0);
  my @stat = stat $seen;
  my $type = $stat[2] & 0170000;
  refuse('directory') if $type == 0040000;
  refuse('special') if $type != 0100000;
  my $opened = sysopen(my $file, '/proc/self/fd/' . fileno($seen), $flags | $o_gently);
  refuse($! + 0) unless $opened || $! == $bearable;
  return ($opened ? $file : undef, @stat);
}

sub read_file {
  my ($path, $most) = @_;
  my ($file, @stat) = open_regular($path, $o_rdonly, 0, 0);
  my $size = $stat[7];
  refuse('large') if $size > $most;
  # Files that the kernel generates (/proc) have size 0.
  my $wanted = $size || $most + 1;
  my $content = '';
  while (length $content < $wanted) {
    my $left = $wanted - length $content;
    my $got = sysread($file, $content, $left < $piece ? $left : $piece, length $content);
    refuse($! + 0) unless defined $got;
    last if $got == 0;
  }
  refuse('large') if length $content > $most;
  say_all('ok ' . length($content) . "\n");
  say_all($content);
}

sub list {
  my ($root, $depth, $most_entries, $most_bytes, $most_seconds) = @_;
  my $until = time + $most_seconds;
  my ($out, $entries, $bytes, $cut) = ("ok\n", 0, 0, 0);
  my @level = ('');
  $root = '' if $root eq '/';
  DEPTH: for (1 .. $depth) {
    my @below;
    for my $path (@level) {
      my $given = $path eq '';
      my ($folder, $names);
      my $flags = $o_directory | $o_gently | ($given ? 0 : $o_nofollow);
      # Entered through the open descriptor: no name is resolved twice.
      unless (sysopen($folder, $given && $root eq '' ? '/' : $root . $path, $flags) && chdir $folder and opendir $names, '.') {
        refuse($! + 0) if $given;
        $cut = 1;
        next;
      }
      $out .= "D$path\0";
      $bytes += length $path;
      for (;;) {
        $! = 0;
        my $name = readdir $names;
        unless (defined $name) {
          $cut = 1 if $!;
          last;
        }
        next if $name eq '.' || $name eq '..';
        if ($entries == $most_entries || $bytes >= $most_bytes || ($entries & 127) == 0 && time > $until) {
          $cut = 1;
          last DEPTH;
        }
        # Removed meanwhile.
        lstat $name or next;
        my $is_folder = -d _;
        $entries += 1;
        $bytes += length($root) + length($path) + 2 * length($name);
        $out .= ($is_folder ? 'd' : 'f') . "$name\0";
        push @below, "$path/$name" if $is_folder;
        if (length $out >= $piece) {
          say_all($out);
          $out = '';
        }
      }
    }
    @level = @below;
  }
  say_all($out . 'E' . ($cut ? 'T' : 'C'));
}


# Enters the folder; makes its missing parts.
sub enter {
  my ($folder) = @_;
  return if chdir $folder;
  refuse($! + 0) if $! != $ENOENT;
  for (my $at = 1; ($at = index($folder, '/', $at)) >= 0; $at += 1) {
    my $part = substr($folder, 0, $at);
    mkdir $part or $! == $EEXIST or refuse($! + 0);
  }
  chdir $folder or refuse($! + 0);
}

sub put {
  my ($file, $content) = @_;
  for (my $at = 0; $at < length $content;) {
    my $sent = syswrite($file, $content, length($content) - $at, $at);
    return 0 unless defined $sent;
    $at += $sent;
  }
  return syscall($fsync, fileno($file)) == 0 || $! == $EINVAL;
}

# For a file that cannot be replaced by another. Reserves the space first, so that a full disk keeps
# the old content.
sub write_in_place {
  my ($file, $content) = @_;
  my $size = length $content;
  my ($keep_size, $from) = (1, 0);
  if ($size > 0 && syscall($fallocate, fileno($file), $keep_size, $from, $size) != 0) {
    refuse($! + 0) if $! == $ENOSPC || $! == $EDQUOT || $! == $EFBIG;
  }
  my $before = -s $file;
  put($file, $content) or refuse($! + 0);
  if ($before > $size) {
    truncate($file, $size) && syscall($fsync, fileno($file)) == 0 or refuse($! + 0);
  }
}

# Links an unnamed file to $name.
sub name_it {
  my ($file, $name) = @_;
  my ($here, $follow) = (-100, 0x400);
  my $source = '/proc/self/fd/' . fileno $file;
  my $target = "$name";
  return syscall($linkat, $here, $source, $here, $target, $follow) == 0;
}

sub write_file {
  my ($path, $content) = @_;
  # Writes the target of a symbolic link, existing or not; the link stays.
  for (my $hops = 0; lstat $path and -l _; $hops += 1) {
    refuse($ELOOP) if $hops == 40;
    my $to = readlink $path;
    refuse($! + 0) unless defined $to;
    my ($folder) = $path =~ m{^(.*/)}s;
    $path = $to =~ m{^/} ? $to : $folder . $to;
  }
  my ($folder, $name) = $path =~ m{^(.*/)([^/]+)$}s;
  refuse('directory') if !defined $name || $name eq '.' || $name eq '..';
  enter($folder);

  my ($there, @old);
  if (lstat $name) {
    # A running program cannot be written, only replaced.
    ($there, @old) = open_regular($name, $o_wronly, $o_nofollow, $ETXTBSY);
  } elsif ($! != $ENOENT) {
    refuse($! + 0);
  }

  # Unnamed until complete, so that a killed process leaves nothing behind. With a temporary name
  # where the file system has no O_TMPFILE.
  my $temporary = ".berth-write-$$-" . time;
  my $named = 0;
  my $made = sysopen(my $fresh, '.', $o_tmpfile | $o_wronly, 0666);
  if (!$made && ($! == $EOPNOTSUPP || $! == $EISDIR || $! == $EINVAL || $! == $ENOENT)) {
    $made = $named = sysopen($fresh, $temporary, $o_creat_excl | $o_wronly | $o_nofollow, 0666);
  }
  my $error = $made ? 0 : $! + 0;
  my $fail = sub {
    my ($why) = @_;
    unlink $temporary if $named;
    refuse($why);
  };
  my $in_place = sub {
    unlink $temporary if $named;
    write_in_place($there, $content);
    say_all('ok ' . length($content) . "\n");
    exit 0;
  };
  if (!$made) {
    $in_place->() if $there && ($error == $EPERM || $error == $EACCES);
    refuse($error);
  }
  if (@old) {
    if (!chown $old[4], $old[5], $fresh) {
      $in_place->() if $there;
      $fail->($! + 0);
    }
    chmod $old[2] & 01777, $fresh or $fail->($! + 0);
  }
  put($fresh, $content) or $fail->($! + 0);
  if ($named || @old || !name_it($fresh, $name)) {
    if (!$named) {
      name_it($fresh, $temporary) or $fail->($! + 0);
      $named = 1;
    }
    if (!rename $temporary, $name) {
      my $why = $! + 0;
      # A sticky folder, or a file that is a mount point.
      $in_place->() if $there && ($why == $EPERM || $why == $EACCES || $why == $EBUSY || $why == $EXDEV);
      $fail->($why);
    }
  }
  if (sysopen(my $here, '.', $o_directory | $o_gently)) {
    syscall($fsync, fileno($here)) == 0 || $! == $EINVAL or refuse($! + 0);
  }
  say_all('ok ' . length($content) . "\n");
}

sub serve {
  my ($verb, $path, @numbers) = split /\0/, take(hex take(8));
  @numbers = map { $_ + 0 } @numbers;
  if ($verb eq 'read') { read_file($path, @numbers); }
  elsif ($verb eq 'list') { list($path, @numbers); }
  elsif ($verb eq 'write') { write_file($path, take($numbers[0])); }
}

socket(my $server, 1, 1, 0) or die "socket: $!\n";
unlink $listen_at;
bind($server, pack('S a*', 1, "$listen_at\0")) or die "$listen_at: $!\n";
listen($server, 128) or die "listen: $!\n";
$SIG{CHLD} = 'IGNORE';
$| = 1;
print "ready\n";
my $watched = '';
vec($watched, fileno(STDIN), 1) = 1;
vec($watched, fileno($server), 1) = 1;
for (;;) {
  my $ready = $watched;
  next unless select($ready, undef, undef, undef) > 0;
  # The daemon has exited.
  exit 0 if vec($ready, fileno(STDIN), 1);
  next unless accept($peer, $server);
  my $child = fork;
  if (!defined $child) {
    syswrite($peer, 'no ' . ($! + 0) . "\n");
  } elsif ($child == 0) {
    alarm $seconds;
    close $server;
    become_tenant();
    serve();
    exit 0;
  }
  close $peer;
}
