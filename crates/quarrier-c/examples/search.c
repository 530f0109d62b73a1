/* Find patterns in a file, and stop after the third finding.
 *
 *     cc search.c $(pkg-config --cflags --libs quarrier)
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <quarrier.h>

static void check(quarrier_status status, quarrier_error *error) {
    if (status != QUARRIER_STATUS_OK) {
        fprintf(stderr, "%s\n", quarrier_error_message(error));
        quarrier_error_free(error);
        exit(1);
    }
}

/* Receives a finding; a return value other than 0 ends the search. */
static int take(const quarrier_finding *finding, void *context) {
    int *count = context;
    printf("%" PRIu64 " %s %.*s\n", finding->offset, finding->pattern_name, (int)finding->found_length,
           (const char *)finding->found);
    *count += 1;
    return *count == 3;
}

int main(void) {
    FILE *image = fopen("disk.img", "wb");
    if (image == NULL || fputs("an invoice, INVOICE no. 17, invoice no. 18", image) == EOF ||
        fclose(image) != 0) {
        perror("disk.img");
        return 1;
    }

    quarrier_error *error = NULL;
    quarrier_search *search = NULL;
    quarrier_search_options options = {.struct_bytes = sizeof options};
    options.ignore_case = true;
    check(quarrier_search_new(&options, &search, &error), error);
    check(quarrier_search_add_text(search, "invoice", NULL, &error), error);
    check(quarrier_search_add_regex(search, "no\\. [0-9]+", "number", &error), error);

    int count = 0;
    quarrier_report *report = NULL;
    quarrier_status status = quarrier_search_run(search, "disk.img", NULL, take, &count, &report, &error);
    if (status == QUARRIER_STATUS_STOPPED) {
        printf("stopped after %" PRIu64 "\n", quarrier_report_rows(report));
        quarrier_error_free(error);
    } else {
        check(status, error);
    }
    quarrier_report_free(report);

    /* An invalid pattern is an error with its position. */
    error = NULL;
    if (quarrier_search_add_hex(search, "FF D", NULL, &error) == QUARRIER_STATUS_PATTERN) {
        puts("refused: an odd digit");
    }
    quarrier_error_free(error);
    quarrier_search_free(search);
    return 0;
}

/* Prints:
 * 3 invoice invoice
 * 12 invoice INVOICE
 * 20 number no. 17
 * stopped after 3
 * refused: an odd digit
 */
