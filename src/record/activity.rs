//! Records as an enum, for matching on the kind instead of trying one type after another.

use super::*;

/// The activity kinds, each with a reference to the record.
macro_rules! activities {
    ($($name:ident),* $(,)?) => {
        /// A reference to a record by its kind.
        #[derive(Copy, Clone, Debug)]
        #[non_exhaustive]
        pub enum Activity<'a> {
            $(
                #[doc = concat!("See [`", stringify!($name), "`].")]
                $name(&'a $name),
            )*
            /// The arguments of a call; see [`Arguments`](struct@Arguments).
            Arguments {
                /// The call.
                correlation: CorrelationId,
                /// The function.
                operation: Operation,
                /// The values.
                values: &'a [u64],
            },
            /// A record of an unknown kind or version, or a misaligned one.
            Other(RecordRef<'a>),
        }

        impl<'a> RecordRef<'a> {
            /// The record by its kind, in place.
            pub fn activity(&self) -> Activity<'a> {
                let known = match self.kind() {
                    $($name::KIND => self.get::<$name>().map(Activity::$name),)*
                    Kind::ARGUMENTS => self.arguments(),
                    _ => None,
                };
                known.unwrap_or(Activity::Other(*self))
            }
        }
    };
}

activities!(
    Api,
    KernelDispatch,
    MemoryCopy,
    MemorySet,
    Allocation,
    Synchronization,
    Completion,
    Retirement,
    Dependency,
    ExternalCorrelation,
    ChildKernel,
    GraphNode,
    GraphChange,
    Overhead,
    Environment,
    UnifiedMemoryCounter,
    Loss,
    Marker,
    ClockSnapshot,
    ClockPair,
    Preemption,
    HostTrapSample,
    StochasticSample,
    InvalidSample,
    SamplingTotals,
    SampleAggregate,
    SourceLocator,
    InstructionCorrelation,
    InstructionCount,
    CounterValue,
);

impl<'a> RecordRef<'a> {
    fn arguments(&self) -> Option<Activity<'a>> {
        let (fixed, values) = self.bytes().split_at_checked(Arguments::bytes_for(0))?;
        let fixed: &[u64] = bytemuck::try_cast_slice(fixed).ok()?;
        let values: &[u64] = bytemuck::try_cast_slice(values).ok()?;
        let [operation, count]: [u32; 2] = bytemuck::cast(fixed[2]);
        Some(Activity::Arguments {
            correlation: CorrelationId(fixed[1]),
            operation: bytemuck::cast(operation),
            values: values.get(..count as usize)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_matched_by_what_they_are_in_place() {
        let mut words: Vec<u64> = Vec::new();
        let mut copy = MemoryCopy::blank();
        copy.bytes = 7;
        let operation = Operation {
            domain: Domain::SIM,
            number: 9,
        };
        let arguments = Arguments::new(CorrelationId(3), operation, &[4, 5]);
        let arguments = &bytemuck::bytes_of(&arguments)[..Arguments::bytes_for(2)];
        words.extend_from_slice(bytemuck::cast_slice(bytemuck::bytes_of(&copy)));
        words.extend_from_slice(bytemuck::cast_slice::<u8, u64>(
            &arguments.to_vec().into_boxed_slice(),
        ));
        let note = Note::blank();
        words.extend_from_slice(bytemuck::cast_slice(bytemuck::bytes_of(&note)));
        let bytes: &[u8] = bytemuck::cast_slice(&words);
        let all: Vec<Activity<'_>> = Records::new(bytes)
            .map(|record| record.activity())
            .collect();
        assert!(matches!(all[0], Activity::MemoryCopy(copy) if copy.bytes == 7));
        assert!(matches!(
            all[1],
            Activity::Arguments { correlation: CorrelationId(3), operation: of, values: [4, 5] } if of == operation
        ));
        assert!(matches!(all[2], Activity::Other(other) if other.kind() == Kind::NOTE));
    }
}
