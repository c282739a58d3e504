/* CLPerfMarker: markers of AMD's APP Profiler for OpenCL, as AMD's "OpenCL Performance Marker API" 1.1 describes them.
   `gputrail library FOLDER` writes libCLPerfMarker.so into FOLDER/lib/gputrail-markers, and docs/markers.md of gputrail says how markers are recorded.
   All functions may be called from several threads, and return one of the codes below. */
#ifndef CLPERFMARKER_H
#define CLPERFMARKER_H

#ifdef __cplusplus
extern "C" {
#endif

#define AP_SUCCESS 0
#define AP_UNINITIALIZED_PERF_MARKER (-1) /* clInitializePerfMarkerAMD has not been called */
#define AP_FINALIZED_PERF_MARKER (-2)     /* clFinalizePerfMarkerAMD has been called */
#define AP_UNBALANCED_MARKER (-3)         /* no marker of this thread is open */
#define AP_APP_PROFILER_NOT_DETECTED (-4) /* the process is not recorded */
#define AP_NULL_MARKER_NAME (-5)
#define AP_INTERNAL_ERROR (-6)
#define AP_OUT_OF_MEMORY (-7)
#define AP_FAILED_TO_OPEN_OUTPUT_FILE (-8)

#if defined(_WIN32) || defined(__CYGWIN__)
#define AP_API_CALL __stdcall
#else
#define AP_API_CALL
#endif

/* Begins to take markers. */
int AP_API_CALL clInitializePerfMarkerAMD(void);
/* Begins a marker on the calling thread. An outermost one may have a group, whose branch it belongs to; NULL for none. */
int AP_API_CALL clBeginPerfMarkerAMD(const char *szMarkerName, const char *szGroupName);
/* Ends the innermost marker of the calling thread. */
int AP_API_CALL clEndPerfMarkerAMD(void);
/* Takes no further markers, and writes the file of markers if one was asked for. Otherwise it is written when the process ends. */
int AP_API_CALL clFinalizePerfMarkerAMD(void);

#ifdef __cplusplus
}
#endif

#endif
